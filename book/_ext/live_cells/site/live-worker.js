// Runs the page's Python beside the page, so that reading, scrolling and Stop go on working.
"use strict";

let pyodide, runner, page, base;

const tell = (kind, more = {}) => self.postMessage({ kind, ...more });

// How much of what is being loaded has arrived, for a reader on a slow line. Bytes are counted as they are used, so the
// total is known beforehand only where files are not compressed on their way: of packages, and of Pyodide's own files,
// whose sizes stand here (0.27.7: the WebAssembly, the library, the list of packages).
const CORE = 10_105_545 + 2_360_737 + 112_205;
const load = { text: "", got: 0, total: 0, told: 0 };

function begin(text, total = 0) {
  Object.assign(load, { text, total, got: 0, told: 0 });
  tell("progress", { text, aloud: true });
}

function arrived(bytes) {
  load.got += bytes;
  if (!load.total || load.got - load.told < 100_000) return;
  load.told = load.got;
  const megabytes = (count) => (count / 1e6).toFixed(1);
  tell("progress", { text: `${load.text}: ${megabytes(load.got)} of ${megabytes(Math.max(load.got, load.total))} MB` });
}

const fetchWhole = self.fetch.bind(self);
self.fetch = async (...asked) => {
  const answer = await fetchWhole(...asked);
  if (!answer.ok || !answer.body || !answer.url.startsWith(base)) return answer;
  if (answer.url.endsWith(".whl")) load.total += Number(answer.headers.get("content-length"));
  const counted = new TransformStream({
    transform(chunk, onward) {
      arrived(chunk.byteLength);
      onward.enqueue(chunk);
    },
  });
  return new Response(answer.body.pipeThrough(counted), { status: answer.status, headers: answer.headers });
};

async function boot({ url, files, interrupt }) {
  base = url;
  begin("Loading Python", CORE);
  importScripts(`${url}pyodide.js`);
  pyodide = await loadPyodide({ indexURL: url });
  if (interrupt) pyodide.setInterruptBuffer(interrupt);
  begin("Starting Python");
  for (const [name, address] of Object.entries(files)) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
    pyodide.FS.writeFile(`/home/pyodide/${name}.py`, await answer.text());
  }
  runner = pyodide.pyimport("live_runner");
  page = pyodide.runPython("{'__name__': '__main__', '__builtins__': __builtins__}");
  tell("ready");
}

// What of the code's imports Pyodide has, is loaded. What it has not, Python will say.
async function loadPackages(code) {
  const failures = [];
  try {
    await pyodide.loadPackagesFromImports(code, {
      messageCallback: (text) => {
        if (text.startsWith("Loading ")) begin(text.replaceAll(", ", " · "));
      },
      errorCallback: (text) => failures.push(text),
    });
  } catch (error) {
    failures.push(String(error));
  }
  return failures;
}

async function run({ code, imports, name }) {
  const failures = await loadPackages(imports ?? code);
  tell("running");
  const report = (kind, text, more) =>
    tell("output", { output: kind, text, more: more?.toJs?.({ dict_converter: Object.fromEntries }) ?? null });
  const ok = runner.run_cell(code, name, page, report);
  tell("done", { ok, failures });
}

self.onmessage = async ({ data }) => {
  try {
    await (data.ask === "boot" ? boot(data) : run(data));
  } catch (error) {
    tell("fatal", { during: data.ask, text: String(error?.message ?? error) });
  }
};
