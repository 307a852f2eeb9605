// The editor of a live cell. Colours are CSS classes (tok-*), so that they follow the page's light and dark mode.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// Returns { text(), focus(), close() }. `describedBy` is the id of the element that explains the keys.
function open({ parent, text, label, describedBy, onChange, onRun }) {
  const run = () => {
    onRun();
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(
          keymap.of([
            { key: "Shift-Enter", run },
            { key: "Mod-Enter", run },
          ]),
        ),
        history(),
        drawSelection(),
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        python(),
        syntaxHighlighting(classHighlighter),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({
          "aria-label": label,
          "aria-describedby": describedBy,
          autocapitalize: "off",
          autocorrect: "off",
          spellcheck: "false",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  // The page's own shortcuts (the theme's "/" for the search field) must not see what is typed here.
  view.dom.addEventListener("keydown", (event) => event.stopPropagation());
  return {
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    close: () => view.destroy(),
  };
}

globalThis.liveCellsEditor = { open };
