// Runs the page's Python beside the page, so that reading, scrolling and Stop go on working.
"use strict";

let pyodide, runner, page, base;

const tell = (kind, more = {}) => self.postMessage({ kind, ...more });

async function boot({ url, files, interrupt }) {
  base = url;
  tell("progress", { text: "Loading Python" });
  importScripts(`${url}pyodide.js`);
  pyodide = await loadPyodide({ indexURL: url });
  if (interrupt) pyodide.setInterruptBuffer(interrupt);
  tell("progress", { text: "Starting Python" });
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
        if (text.startsWith("Loading ")) tell("progress", { text: text.replaceAll(", ", " · ") });
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
