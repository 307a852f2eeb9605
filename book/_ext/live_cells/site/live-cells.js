// Live cells: the page's code runs, and may be changed, in the reader's browser.
// Python (live-worker.js) and the editor (live-editor.js) are loaded when they are first asked for.
(() => {
  "use strict";

  const here = document.currentScript.src;
  const page = JSON.parse(document.getElementById("live-cells-data").textContent);
  const address = (file) => new URL(file, here).href;
  const pyodide = new URL(page.pyodide, new URL("../", here)).href;
  const PATIENCE = 3000; // milliseconds for Python to stop by itself, where it can

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const notebookLink = () => make("a", { href: page.notebook, download: "", textContent: "download this page’s notebook" });

  // ---- what can go wrong, in words --------------------------------------------------------------------

  class Trouble extends Error {}

  const host = new URL(pyodide).host || "this site";
  const TROUBLE = {
    file:
      "This page was opened as a file, and a browser starts no Python from a file. Open the book from a web " +
      "server (`make serve` starts one), or run the cells on your computer:",
    noWebAssembly:
      "This browser has no WebAssembly, or it is switched off, and Python needs it to run here. Use another " +
      "browser, or run the cells on your computer:",
    unreachable:
      `Python could not be loaded from ${host}: there is no network, or the address is blocked here. Press Run ` +
      "again when it can be reached, or run the cells on your computer:",
    memory:
      "The browser has no memory left for Python. Close other tabs and press Run again, make the arrays smaller, " +
      "or run the cells on your computer:",
    broken: "Python broke down in the browser. Press Run to start it again, or run the cells on your computer:",
  };

  function troubleOf(during, text) {
    if (/out of memory|could not allocate|memory access out of bounds|array buffer allocation/i.test(text)) return "memory";
    if (/WebAssembly is not defined|wasm code generation disallowed|unsafe-eval/i.test(text)) return "noWebAssembly";
    return during === "boot" ? "unreachable" : "broken";
  }

  // ---- the Python of this page ------------------------------------------------------------------------

  const python = {
    worker: null,
    interrupt: null,
    waiting: null, // what the worker was asked last: { resolve, reject, hear }

    ask(message, hear) {
      return new Promise((resolve, reject) => {
        this.waiting = { resolve, reject, hear };
        this.worker.postMessage(message);
      });
    },

    async start(hear) {
      if (this.worker) return;
      if (location.protocol === "file:") throw new Trouble("file");
      if (typeof WebAssembly !== "object") throw new Trouble("noWebAssembly");
      this.worker = new Worker(address(page.files.worker));
      this.worker.onmessage = ({ data }) => this.heard(data);
      this.worker.onerror = (event) => this.heard({ kind: "fatal", during: "boot", text: event.message ?? "" });
      // Where the site's server allows shared memory, Stop interrupts and keeps what cells have made.
      this.interrupt = globalThis.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
      const files = { live_runner: address(page.files.runner), live_figures: address(page.files.figures) };
      await this.ask({ ask: "boot", url: pyodide, files, interrupt: this.interrupt }, hear);
    },

    heard(data) {
      const { resolve, reject, hear } = this.waiting;
      if (data.kind === "ready" || data.kind === "done") resolve(data);
      else if (data.kind === "fatal") {
        console.warn(`Live cells: ${data.text}`);
        this.end();
        reject(new Trouble(troubleOf(data.during, data.text)));
      } else hear(data);
    },

    // Python gives way by itself where it can; otherwise, or when it does not, it is ended.
    stop() {
      const end = () => {
        const { reject } = this.waiting;
        this.end();
        reject(new Trouble("stopped"));
      };
      const asked = this.waiting;
      if (!this.interrupt) return end();
      this.interrupt[0] = 2; // SIGINT
      setTimeout(() => this.waiting === asked && this.worker && cells.some((cell) => cell.busy) && end(), PATIENCE);
    },

    end() {
      this.worker?.terminate();
      this.worker = null;
      for (const cell of cells) cell.forget();
    },
  };

  // ---- what outlives a reload -------------------------------------------------------------------------

  // A browser may refuse to store anything, or have no room: then edits are lost with the page, and the reader is
  // not bothered with it.
  function tried(how) {
    try {
      return how();
    } catch {
      return null;
    }
  }

  const isEdit = (kept) =>
    typeof kept?.original === "string" &&
    typeof kept.text === "string" &&
    Number.isInteger(kept.nth) &&
    Number.isInteger(kept.number);

  // Edits stay in this browser until Reset. They are found again by what they are edits of: the book's text, and by
  // which of the cells with this text it was. That Python has run is kept for this tab: a reload loses its variables.
  const memory = {
    place: `live-edits:${location.pathname}`,
    ranPlace: `live-ran:${location.pathname}`,
    get edits() {
      const kept = tried(() => JSON.parse(localStorage.getItem(this.place)));
      return Array.isArray(kept) ? kept.filter(isEdit) : [];
    },
    // Keep this edit in place of what is kept of the same cell; without a text only forget that.
    change({ original, nth, number, text }) {
      const others = this.edits.filter((edit) => edit.original !== original || edit.nth !== nth);
      const edits = text === undefined ? others : [...others, { original, nth, number, text }];
      tried(() => localStorage.setItem(this.place, JSON.stringify(edits)));
    },
    get ran() {
      return tried(() => sessionStorage.getItem(this.ranPlace)) !== null;
    },
    set ran(yes) {
      tried(() => (yes ? sessionStorage.setItem(this.ranPlace, "yes") : sessionStorage.removeItem(this.ranPlace)));
    },
  };

  // ---- cells ------------------------------------------------------------------------------------------

  const status = document.body.appendChild(make("div", { className: "visually-hidden", role: "status" }));

  // A cell that readers do not see, or the page's set-up: it only runs before others.
  class Cell {
    constructor(code, imports) {
      this.text = this.original = code;
      this.imports = imports;
      this.ran = null; // the text that ran in this session
      this.name = "cell of the page’s set-up"; // in tracebacks
      this.label = "the page’s set-up";
    }
    get edited() {
      return this.text !== this.original;
    }
    forget() {
      this.ran = null;
    }
    // The earlier cells whose names this one uses. Of an edited cell every word may be such a name.
    uses() {
      const place = cells.indexOf(this);
      if (!this.edited) return page.cells[place].needs.map((other) => cells[other]);
      const words = new Set(this.text.match(/[\p{L}_][\p{L}\p{N}_]*/gu));
      return cells.slice(0, place).filter((_, other) => page.cells[other].binds.some((name) => words.has(name)));
    }
  }

  // All earlier cells that these use, directly or through others, in the order of the page.
  function usedBy(...waiting) {
    const found = new Set();
    while (waiting.length) {
      for (const other of waiting.pop().uses()) {
        if (!found.has(other)) waiting.push(other);
        found.add(other);
      }
    }
    return cells.filter((cell) => found.has(cell));
  }

  // What has to run before a cell: what it uses, the page's set-up, and whatever the reader has edited above it.
  function runsBefore(cell) {
    const above = cells.slice(0, cells.indexOf(cell));
    const edited = above.filter((other) => other.edited);
    const needed = new Set([...usedBy(cell, ...edited), ...edited]);
    return above.filter((other, place) => needed.has(other) || (place === 0 && !other.number));
  }

  class LiveCell extends Cell {
    constructor(bar, number) {
      const element = bar.closest("div.cell");
      const source = element.querySelector(".cell_input");
      const pre = source.querySelector("pre");
      super(pre.textContent.replace(/\n$/, ""));
      Object.assign(this, { bar, number, element, source, pre, name: `cell ${number}`, label: `cell ${number}` });
      this.published = [...element.querySelectorAll(".cell_output")].map((output) =>
        output.parentElement.matches("details.below-input") ? output.parentElement : output,
      );
      this.pictures = this.published.flatMap((output) => [...output.querySelectorAll("img")].map((image) => image.alt));
      this.colours = pre.innerHTML;
      this.state = bar.querySelector(".live-state");
      this.buttons = Object.fromEntries([...bar.querySelectorAll("button")].map((button) => [button.dataset.do, button]));
      this.note = make("p", { className: "live-old", textContent: "Out of date: made before a change. Press Run." });
      this.busy = false;
      bar.addEventListener("click", ({ target }) => {
        const button = target.closest("button");
        if (button) this[button.dataset.do]();
      });
      for (const part of [bar, source]) {
        part.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          this.run();
        });
      }
    }

    // The code that its output depends on.
    madeOf() {
      return JSON.stringify([...usedBy(this), this].map((cell) => [cells.indexOf(cell), cell.text]));
    }

    // An output that was made of other code than stands on the page now is dimmed, and says so.
    dim() {
      const outdated = !this.busy && (this.output || this.published.length > 0) && this.madeOf() !== this.shown;
      if (this.element.classList.toggle("live-outdated", outdated)) this.bar.after(this.note);
      else this.note.remove();
    }

    say(text, aloud = true) {
      this.state.textContent = text;
      if (aloud) status.textContent = `Cell ${this.number}: ${text}`;
    }

    show(name, visible) {
      const button = this.buttons[name];
      if (!visible && document.activeElement === button) this.buttons.run.focus();
      button.hidden = !visible;
    }

    forget() {
      if (this.ran !== null && !this.busy) this.say(this.output ? "to be run again" : "", false);
      super.forget();
    }

    // -- run and stop

    run() {
      if (!this.busy) queue(this);
    }

    stop() {
      stopAll();
    }

    startBusy() {
      this.busy = true;
      this.say("Starting …", false);
      this.buttons.run.setAttribute("aria-disabled", "true");
      this.show("stop", true);
    }

    endBusy() {
      this.busy = false;
      this.buttons.run.removeAttribute("aria-disabled");
      this.show("stop", false);
      this.show("reset", true);
      dimOutdated();
    }

    // -- output

    clear() {
      this.output?.remove();
      for (const output of this.published) output.hidden = true;
      this.whose = make("p", { className: "live-whose" });
      this.output = make("div", { className: "live-output" }, this.whose);
      this.output.setAttribute("role", "group");
      this.output.setAttribute("aria-label", `Output of your run of cell ${this.number}`);
      this.bar.after(this.output);
      this.show("reset", true); // also where it ran only because a later cell needed it
      this.drawn = 0;
      this.title("Your run");
    }

    title(text) {
      this.whose.textContent = this.edited ? `${text} of the edited code:` : `${text}:`;
    }

    add({ output: kind, text, more }) {
      if (kind === "figure") return this.addFigure(text, more);
      if (kind === "note") return this.addNote(text);
      const last = this.output.lastElementChild;
      const className = `live-${kind}`;
      const block = last.className === className ? last : this.output.appendChild(make("pre", { className }));
      block.append(text);
      // a box that scrolls must be reachable by keyboard
      if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
      if (kind === "error") this.last = more.last;
    }

    addFigure(png, { words, width }) {
      const alt = (!this.edited && this.pictures[this.drawn]) || `Figure ${this.drawn + 1} of your run; ${words}`;
      this.drawn += 1;
      this.output.append(make("img", { src: `data:image/png;base64,${png}`, alt, width: Math.round(width) }));
    }

    addNote(...content) {
      this.output.append(make("p", {}, ...content));
    }

    // -- edit and reset

    async edit() {
      const fold = this.source.closest("details");
      if (fold) fold.open = true;
      if (!this.editor) {
        try {
          await loadEditor();
        } catch {
          this.say("The editor could not be loaded: there is no network. Press Edit again when there is.");
          return;
        }
        this.openEditor();
      }
      this.editor.focus();
    }

    openEditor() {
      if (this.editor) return;
      const id = `live-keys-${this.number}`;
      this.keys = make("p", {
        className: "live-keys",
        id,
        textContent: "Shift+Enter runs the cell. Tab indents; press Escape and then Tab to leave the editor.",
      });
      this.box = make("div", { className: "live-editor" });
      this.source.append(this.box);
      this.pre.closest(".highlight").hidden = true;
      this.editor = globalThis.liveCellsEditor.open({
        parent: this.box,
        text: this.text,
        label: `Code of cell ${this.number}`,
        describedBy: id,
        onChange: (text) => this.change(text),
        onRun: () => this.run(),
      });
      this.bar.before(this.keys);
      this.show("edit", false);
      this.show("reset", true);
    }

    change(text) {
      this.text = text;
      const { original, nth, number } = this;
      memory.change({ original, nth, number, text: this.edited ? text : undefined });
      dimOutdated();
    }

    // What was edited before the page was loaded again: shown without the editor, which is not loaded yet.
    recall(text) {
      this.text = text;
      this.pre.textContent = text;
      this.say("Your edit is kept.", false);
      this.show("reset", true);
    }

    // An edit of code that the book has no longer: to be read and copied here until the reader discards it.
    showOld({ original, nth, number, text }) {
      const discard = make("button", { type: "button", textContent: "Discard this text" });
      const summary = `The book’s code has changed since you edited it (cell ${number} then). Your text is kept here and does not run.`;
      const old = make(
        "details",
        { className: "live-kept" },
        make("summary", { textContent: summary }),
        make("pre", { textContent: text }),
        discard,
      );
      discard.addEventListener("click", () => {
        memory.change({ original, nth });
        this.buttons.run.focus();
        old.remove();
      });
      this.bar.before(old);
    }

    reset() {
      this.editor?.close();
      this.box?.remove();
      this.keys?.remove();
      this.output?.remove();
      this.editor = this.box = this.output = null;
      this.text = this.original;
      this.shown = this.asPublished;
      this.change(this.original);
      this.pre.innerHTML = this.colours;
      this.pre.closest(".highlight").hidden = false;
      for (const output of this.published) output.hidden = false;
      this.show("edit", true);
      this.show("reset", false);
      // what was made with the changed code is still in Python: it and what comes after it have to run again
      if (this.ran !== null && this.ran !== this.original) forgetFrom(this);
      this.say("The published code and output are back.");
    }
  }

  function dimOutdated() {
    for (const cell of cells) cell.dim?.();
  }

  function forgetFrom(cell) {
    for (const later of cells.slice(cells.indexOf(cell))) later.forget();
  }

  let loading = null;
  function loadEditor() {
    loading ??= new Promise((resolve, reject) => {
      const script = make("script", { src: address(page.files.editor), onload: resolve, onerror: reject });
      document.head.append(script);
    }).catch((error) => {
      loading = null; // the next press tries again
      throw error;
    });
    return loading;
  }

  // ---- running: one cell after the other --------------------------------------------------------------

  let waiting = [];

  function queue(cell) {
    cell.startBusy();
    waiting.push(cell);
    if (waiting.length > 1) cell.say("Waits for the cell that runs now.");
    else work();
  }

  async function work() {
    while (waiting.length) {
      const cell = waiting[0];
      await runWithEarlier(cell);
      if (waiting[0] === cell) waiting.shift();
    }
  }

  function stopAll() {
    const [running, ...others] = waiting;
    waiting = [running];
    running.say("Stopping …");
    python.stop();
    for (const cell of others) {
      cell.endBusy();
      cell.say("Not run.");
    }
  }

  async function runWithEarlier(cell) {
    let current = cell;
    try {
      await python.start((news) => cell.say(`${news.text} … You can read on meanwhile.`, news.aloud === true));
      lost?.remove(); // what it says has been made good
      memory.ran = true;
      const before = runsBefore(cell);
      const stale = (other) => other.ran !== other.text;
      let done = 0;
      for (const other of before) {
        if (!stale(other)) continue;
        const all = done + before.filter(stale).length; // running one may show that others have to run again
        cell.say(`Running what comes before: ${done + 1} of ${all}, ${other.label} …`, done === 0);
        current = other;
        if (!(await runOne(other, cell))) return;
        done += 1;
      }
      current = cell;
      await runOne(cell, cell);
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      tellTrouble(cell, error.message, current);
    } finally {
      cell.endBusy();
    }
  }

  // Run `cell`, because the reader pressed Run on `pressed`. Returns whether it went through.
  async function runOne(cell, pressed) {
    const { text } = cell;
    const position = cells.indexOf(cell);
    // what runs quietly before the pressed cell prints what is published, unless something was changed
    const changed = cells.slice(0, position + 1).some((other) => other.edited);
    const shows = cell === pressed || (cell.number && (changed || cell.output));
    const place = cell.number ? cell : pressed;
    const outputs = []; // kept for the case that a cell that was to run quietly fails
    let packageMissing = null;
    let started = performance.now();
    const add = (output) => (shows ? place.add(output) : outputs.push(output));
    if (shows) place.clear();
    if (shows && cell.number) cell.shown = cell.madeOf();
    const hear = (news) => {
      if (news.kind === "progress") pressed.say(`${news.text} … You can read on meanwhile.`, news.aloud === true);
      else if (news.kind === "running") {
        started = performance.now();
        if (cell === pressed) pressed.say("Running …");
      } else if (news.output === "package") packageMissing = news.text;
      else add(news);
    };
    if (python.interrupt) python.interrupt[0] = 0;
    const { ok, failures } = await python.ask({ ask: "run", code: text, imports: cell.imports, name: cell.name }, hear);
    const seconds = `${((performance.now() - started) / 1000).toFixed(1)} s`;
    if (ok) {
      // after a change here, what comes after it has to run again
      if (cell.ran !== null && cell.ran !== text) forgetFrom(cell);
      cell.ran = text;
      if (shows) finish(cell, seconds, cell === pressed);
      else if (cell.number) cell.say("has run", false);
      return true;
    }
    if (!shows) {
      place.clear();
      place.shown = place.madeOf();
      for (const output of outputs) place.add(output);
    }
    place.title(cell.number ? "Your run" : "The page’s set-up, which runs first");
    if (packageMissing) {
      place.addNote(
        failures.length
          ? `The package ${packageMissing} could not be loaded from ${host}. Press Run again when it can be reached, or `
          : `The package ${packageMissing} is not to be had in the browser. Leave it out, or to run the code on your computer, `,
        notebookLink(),
        ".",
      );
    }
    const why = place.last ? `with an error: ${place.last}` : "before its end";
    place.last = null;
    if (place !== pressed) {
      place.say("stopped with an error", false);
      if (pressed.output) pressed.title("Your earlier run");
    }
    pressed.say(
      cell === pressed ? `Stopped ${why}` : `Cell ${cell.number ?? "0, the set-up,"} runs before this one and stopped ${why}`,
    );
    return false;
  }

  function finish(cell, seconds, aloud) {
    if (cell.output.children.length === 1) cell.addNote("The cell ran and printed nothing.");
    cell.say(`Finished in ${seconds}`, aloud);
  }

  function tellTrouble(cell, kind, current) {
    if (kind === "stopped") {
      const where = current === cell ? "" : ` while ${current.label} ran, which comes before`;
      cell.say(`Stopped${where}. Python’s variables are lost; earlier cells run again with the next Run.`);
      if (current.output?.children.length === 1) current.addNote("Stopped before it printed anything.");
      return;
    }
    cell.clear();
    for (const output of cell.published) output.hidden = false;
    cell.shown = cell.asPublished;
    cell.whose.remove();
    cell.addNote(TROUBLE[kind], " ", notebookLink(), ".");
    cell.say("Not run.", false);
    status.textContent = `Cell ${cell.number}: ${TROUBLE[kind]}`;
  }

  // ---- the page ---------------------------------------------------------------------------------------

  const cells = page.cells.map(({ code, imports, number }, position) =>
    number ? new LiveCell(document.querySelector(`.live-bar[data-cell="${position}"]`), number) : new Cell(code, imports),
  );

  for (const cell of cells) if (cell.number) cell.asPublished = cell.shown = cell.madeOf();
  const live = cells.filter((cell) => cell.number);
  for (const cell of live) cell.nth = live.filter((other) => other.original === cell.original).indexOf(cell);

  // The cell that has most lines of a text that the book has no longer; of several, the one where that stood.
  function likest({ original, number }) {
    const lines = new Set(original.split("\n").filter((line) => line.trim()));
    const shared = (cell) => cell.original.split("\n").filter((line) => lines.has(line)).length;
    const far = (cell) => Math.abs(cell.number - number);
    return [...live].sort((one, other) => shared(other) - shared(one) || far(one) - far(other))[0];
  }

  for (const edit of memory.edits) {
    const cell = live.find(({ original, nth }) => original === edit.original && nth === edit.nth);
    if (cell) cell.recall(edit.text);
    else likest(edit).showOld(edit);
  }
  dimOutdated();

  const recalled = live.filter((cell) => cell.edited).map((cell) => cell.number);
  const news = [];
  if (memory.ran)
    news.push("The page was loaded again: Python’s variables are lost, and earlier cells run again with the next Run.");
  if (recalled.length) news.push(`Your edits are kept (cell ${recalled.join(", ")}). Reset brings back the book’s code.`);
  let lost = null;
  if (news.length) {
    lost = make("p", { className: "live-lost", textContent: news.join(" ") });
    document.querySelector(".live-hint").after(lost);
    memory.ran = false;
  }
})();
