export type FieldErrors = Record<string, string>;

type FormField = HTMLInputElement | HTMLTextAreaElement;

export const isFormField = (element: unknown): element is FormField =>
  (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) &&
  element.name !== "";

/** What is wrong with what stands in a field, by its own attributes; null if nothing is. */
export function validationError(field: FormField): string | null {
  const { value, validity, minLength } = field;
  if (field.disabled) return null;
  if (field.required && value.trim() === "") return "Please fill this in.";
  // Browsers mind the length only of what was typed, not of what was filled in for the person.
  if (value !== "" && value.length < minLength) return `At least ${minLength} characters.`;
  if (validity.valid) return null;
  if (validity.badInput) return `Please enter a ${field.type === "date" ? "date" : "number"}.`;
  if (validity.patternMismatch) return field.title;
  if (field instanceof HTMLInputElement) {
    if (validity.rangeUnderflow) return `At least ${field.min}.`;
    if (validity.rangeOverflow) return `At most ${Number(field.max).toLocaleString()}.`;
    if (validity.stepMismatch) return "A whole number, please.";
  }
  return field.validationMessage;
}
