// Self-check questions: Check says what the chosen answers are and why. Choosing says nothing, so that arrow keys can
// walk through the answers. What was answered is there again after a reload.
const enliven = (quiz) => {
  const kept = {
    key: `quiz:${location.pathname}:${quiz.querySelector("legend").textContent}`,
    read() {
      try {
        return JSON.parse(localStorage.getItem(this.key));
      } catch {
        return null; // a browser may refuse to store: the question is simply asked again
      }
    },
    write(chosen) {
      try {
        localStorage.setItem(this.key, JSON.stringify(chosen));
      } catch {
        return;
      }
    },
  };
  const answers = [...quiz.querySelectorAll(".quiz-answer")].map((element) => ({
    element,
    input: element.querySelector("input"),
    why: element.querySelector(".quiz-why"),
    right: element.dataset.right === "true",
  }));
  const verdict = quiz.querySelector(".quiz-verdict");
  const button = quiz.querySelector(".quiz-check");

  const reasons = quiz.querySelector(".quiz-reasons");
  reasons.hidden = true; // until Check is pressed

  const forget = () => {
    verdict.textContent = "";
    for (const { element, why } of answers) {
      element.classList.remove("quiz-right", "quiz-wrong");
      why.hidden = true;
    }
  };

  const check = () => {
    forget();
    const chosen = answers.filter(({ input }) => input.checked);
    if (!chosen.length) {
      verdict.textContent = "Choose an answer first.";
      return;
    }
    for (const { element, why, right } of chosen) {
      element.classList.add(right ? "quiz-right" : "quiz-wrong");
      why.hidden = false;
    }
    const wrong = chosen.filter(({ right }) => !right);
    const missing = answers.filter(({ input, right }) => right && !input.checked).length;
    verdict.textContent = wrong.length ? "Not right." : missing ? `Right so far; ${missing} more.` : "Right.";
    // the reason stands under the answer; a screen reader hears it here
    const aloud = document.createElement("span");
    aloud.className = "visually-hidden";
    aloud.textContent = ` ${(wrong[0] ?? chosen[0]).why.textContent}`;
    verdict.append(aloud);
    reasons.hidden = false;
    kept.write(chosen.map(({ input }) => input.value));
  };

  button.hidden = false;
  button.addEventListener("click", check);
  quiz.addEventListener("change", forget);
  quiz.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    check();
  });
  const before = kept.read();
  if (Array.isArray(before)) {
    for (const { input } of answers) input.checked = before.includes(input.value);
    if (answers.some(({ input }) => input.checked)) check();
  }
};

addEventListener("DOMContentLoaded", () => document.querySelectorAll("fieldset.quiz").forEach(enliven));
