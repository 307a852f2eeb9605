// node build.mjs FOLDER: bundle the editor into FOLDER/live-editor.js, with the licences of all that is in it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];
if (!folder) throw new Error("name the folder that the bundle goes to");

const { metafile } = await build({
  entryPoints: ["editor.mjs"],
  outfile: join(folder, "live-editor.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  legalComments: "none",
  banner: { js: "/* Made by `make editor`; do not edit. Licences: live-editor.licences.txt */" },
  metafile: true,
});

const packages = new Set();
for (const file of Object.keys(metafile.inputs)) {
  const found = file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const notices = [...packages].sort().map((name) => {
  const home = join("node_modules", name);
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  const licence = readdirSync(home).find((file) => /^licen[cs]e/i.test(file));
  if (!licence) throw new Error(`${name} ${version} brings no licence file`);
  return `${name} ${version}\n\n${readFileSync(join(home, licence), "utf8").trim()}\n`;
});
writeFileSync(join(folder, "live-editor.licences.txt"), notices.join(`\n${"-".repeat(72)}\n\n`));
