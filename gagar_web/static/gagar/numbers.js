/* What is wrong with a typed score or place, in a sentence; "" where it counts. The browser knows each field's limits. */
window.gagarNumbers = {
  wrong(field) {
    const emptied = field.type !== "checkbox" && field.value === "" && field.dataset.was !== "";
    if (field.checkValidity() && !emptied) return "";
    const got = field.value ? `is ${field.value}` : "has no number";
    const [kind, most] = field.classList.contains("score") ? ["score", 5] : ["place", field.max];
    return `${field.dataset.label || field.name} ${got}: a ${kind} is a whole number from 1 to ${most}.`;
  },
};
