// What is typed into the form of a chat's sampling, and what it means.

import assert from "node:assert/strict";
import { test } from "node:test";

import { PARAMETERS, parsed, shownAs } from "../../static/chat/sheets/parameters.js";

const parameter = (name) => PARAMETERS.find((one) => one.name === name);
const read = (name, text) => parsed(parameter(name), text);

test("nothing typed is the model's choice", () => {
  for (const one of PARAMETERS) assert.deepEqual(parsed(one, " ".repeat(one.name === "stop" ? 0 : 2)), { value: undefined });
});

test("numbers are read with either sign before the fraction", () => {
  assert.deepEqual(read("temperature", "0.7"), { value: 0.7 });
  assert.deepEqual(read("temperature", " 0,7 "), { value: 0.7 });
});

test("what is out of bounds says so", () => {
  assert.equal(read("temperature", "2.1").problem, "bound.between");
  assert.equal(read("top_p", "0").problem, "bound.above");
  assert.equal(read("top_p", "1").value, 1);
  assert.equal(read("top_k", "1.5").problem, "bound.whole");
  assert.equal(read("seed", "many").problem, "bound.number");
  assert.equal(read("temperature", "Infinity").problem, "bound.between");
  assert.equal(read("seed", "9007199254740993").problem, "bound.between");
});

test("each line is one stop text, with its blanks", () => {
  assert.deepEqual(read("stop", "END\n\n User:").value, ["END", " User:"]);
  assert.equal(read("stop", "x\n".repeat(17)).problem, "bound.stops");
  assert.equal(read("stop", "x".repeat(201)).problem, "bound.stop_length");
  assert.equal(shownAs(parameter("stop"), ["a", "b"]), "a\nb");
});
