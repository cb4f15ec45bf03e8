// What the scripts of our pages make elements and numbers with. Texts are set as texts, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en-GB");
const percent = (share) => `${Math.max(1, Math.floor(100 * share))}%`;
const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// Of the properties, `data` is the element's data set, and `aria` what is read aloud, the role included. A child that is
// null or empty is left out.
function made(tag, properties = {}, ...children) {
  const { data, aria, ...plain } = properties;
  const element = Object.assign(document.createElement(tag), plain);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria ?? {})) element.setAttribute(name === "role" ? name : `aria-${name}`, value);
  element.append(...children.filter((each) => each !== null && each !== ""));
  return element;
}
