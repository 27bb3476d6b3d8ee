/** The elements of the markup: the blocks of a message, and the names of their tags. */

export interface MarkdownBlock {
  type: "markdown";
  text: string;
}
export interface ButtonBlock {
  type: "button";
  action: string;
  label: string;
}
export interface InputField {
  type: "input";
  name: string;
  label: string;
  input_type: InputType;
  required: boolean;
}
export interface SelectField {
  type: "select";
  name: string;
  label: string;
  required: boolean;
  options: string[];
}
export interface FormBlock {
  type: "form";
  id: string;
  children: (InputField | SelectField | ButtonBlock | MarkdownBlock)[];
}
export interface CardBlock {
  type: "card";
  title: string;
  children: Block[];
}
export type Block = MarkdownBlock | CardBlock | ButtonBlock | FormBlock;

export const inputTypes = ["text", "number", "email", "date"] as const;
export type InputType = (typeof inputTypes)[number];

type Option = { type: "option"; label: string };
/** What an opening tag represents. */
export type Piece = Block | InputField | SelectField | Option;

export const tagNames = ["card", "button", "form", "input", "select", "option"] as const;
export type TagName = (typeof tagNames)[number];
export type ContainerName = "card" | "form" | "select";
export const isContainer = (name: string | undefined): name is ContainerName =>
  name === "card" || name === "form" || name === "select";
