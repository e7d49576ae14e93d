export { evaluate, isTrue, type Scope } from "./expression/evaluate.js";
export { type Expression, parseExpression, type Value } from "./expression/parse.js";
export { faultsOfCalls, namesIn } from "./expression/references.js";
export { ExpressionError } from "./expression/tokens.js";
