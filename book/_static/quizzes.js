// Let a screen reader say which question an answer belongs to, and what an answer brought.
window.addEventListener("load", () => {
  document.querySelectorAll(".Quiz").forEach((quiz) => {
    const answers = quiz.querySelector(".Answer");
    const question = quiz.querySelector(".MultipleChoiceQn, .ManyChoiceQn");
    if (answers && question) {
      question.id ||= `${quiz.id}-question`;
      answers.setAttribute("role", "group");
      answers.setAttribute("aria-labelledby", question.id);
    }
    quiz.querySelectorAll(".Feedback").forEach((feedback) => feedback.setAttribute("role", "status"));
  });
});
