import { buildSchema, execute, type GraphQLFieldResolver, type GraphQLResolveInfo, parse, validate } from "graphql";
import { SCHEMA } from "./schema.js";
import type { ObjectValue, Value } from "./values.js";

type Args = Record<string, unknown>;
/** Answers one field of one type; what an argument names by its id is there as a value. */
export type Resolver = (on: never, args: never, signal: AbortSignal) => Value | Promise<Value>;
export type Resolvers = Readonly<Record<string, Readonly<Record<string, Resolver>>>>;

const schema = buildSchema(SCHEMA);

/** Answers a query as an engine does: nothing is asked of the graph unless all of it fits the schema. */
export async function answerQuery(
  query: string,
  { resolvers, load, signal }: { resolvers: Resolvers; load(id: string): ObjectValue; signal: AbortSignal },
): Promise<{ status: number; body: unknown }> {
  let document: ReturnType<typeof parse>;
  try {
    document = parse(query);
  } catch (error) {
    return { status: 422, body: { data: null, errors: [error] } };
  }
  const errors = validate(schema, document);
  if (errors.length > 0) return { status: 422, body: { data: null, errors } };
  const fieldResolver: GraphQLFieldResolver<Value, unknown> = async (on, given, _, info) => {
    const { parentType, fieldName } = info;
    const resolver = resolvers[parentType.name]?.[fieldName];
    if (resolver === undefined) throw new Error(`the stand-in has no ${parentType.name}.${fieldName}`);
    const args = loaded(given as Args, info, load);
    const used = new Set<string>();
    const watched = new Proxy(args, {
      get: (target, name) => {
        used.add(String(name));
        return target[String(name)];
      },
    });
    const value = await resolver(on as never, watched as never, signal);
    // An argument that has no effect here would hide what it does to an engine.
    const ignored = (info.fieldNodes[0]?.arguments ?? []).find(({ name }) => !used.has(name.value));
    if (ignored === undefined) return value;
    throw new Error(`the stand-in has no argument ${ignored.name.value} of ${parentType.name}.${fieldName}`);
  };
  const body = await execute({
    schema,
    document,
    rootValue: { type: "Query" },
    fieldResolver,
    typeResolver: ({ type }: { type: string }) => type,
  });
  return { status: 200, body: body.errors === undefined ? body : { ...body, data: null } };
}

/** Loads what arguments name by their ids; each must be of the type that the schema says. */
function loaded(args: Args, { parentType, fieldName }: GraphQLResolveInfo, load: (id: string) => ObjectValue): Args {
  const definitions = parentType.getFields()[fieldName]?.args ?? [];
  const all = { ...args };
  for (const { name, astNode } of definitions) {
    const [directive] = astNode?.directives ?? [];
    const given = all[name];
    if (directive?.name.value !== "expectedType" || given === undefined || given === null) continue;
    const [expected] = directive.arguments ?? [];
    const type = expected?.value.kind === "StringValue" ? expected.value.value : "";
    const one = (id: string): ObjectValue => {
      const value = load(id);
      if (value.type === type) return value;
      throw new Error(`expected an ID of ${type} for ${name}, got one of ${value.type}`);
    };
    all[name] = Array.isArray(given) ? given.map(one) : one(given as string);
  }
  return all;
}
