import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';
import { UnreachableError } from '../errors.ts';
import { ClockError } from './call-clock.ts';
import { isSigned, sign, type Secrets } from './mac.ts';

const Identity = Type.Object({ id: Type.String(), incarnation: Type.String() });
const HeaderValues = Type.Record(Type.String(), Type.String());
/** Limited in length, since nonces are kept. */
const Nonce = Type.String({ maxLength: 64 });

const Call = Type.Object({
  from: Identity,
  /** An empty incarnation stands for whichever incarnation of the node runs. */
  to: Identity,
  method: Type.String(),
  path: Type.String(),
  headers: HeaderValues,
  /** Milliseconds since 1970 by the clock of the called node, if known, else by the cluster's. */
  time: Type.Number(),
  nonce: Nonce,
  bodyHash: Type.String(),
});

const Answer = Type.Object({
  status: Type.Integer({ minimum: 100, maximum: 599 }),
  headers: HeaderValues,
  /** Nonce of the call. */
  nonce: Nonce,
  bodyHash: Type.String(),
  /** Why the call was rejected: one of REFUSALS, or a reason of another version. */
  refused: Type.Optional(Type.String()),
  /** The node's time, for another attempt, where the call was rejected for its time. */
  time: Type.Optional(Type.Number()),
});

const SCHEMAS = { call: Call, answer: Answer } satisfies Record<string, TSchema>;
type Kind = keyof typeof SCHEMAS;

/**
 * A call is an HTTP POST whose header `kiln-call` says what is called, and whose `kiln-mac` proves who calls; the body is
 * that of the call. The answer has `kiln-answer` and `kiln-mac` in the same way, whatever its own status.
 */
export type Call = Readonly<Static<typeof Call>>;

/** The answer to a call. */
export type Answer = Readonly<Static<typeof Answer>>;

/** Why a call is rejected, with the text for the log. */
export const REFUSALS = {
  another: 'the node was restarted since',
  time: 'it is too old by the clock of the node',
  repeated: 'the same call was received before',
  certificate: 'the calling node has shown no valid certificate that names it',
  busy: 'the node is busy with too many calls or streams',
} as const;

export type Refusal = keyof typeof REFUSALS;

/**
 * Makes the error for a call or stream that a node has rejected.
 * @param refused reason in its answer, possibly one that only another version knows
 */
export function refusalOf(what: 'call' | 'stream', to: string, refused: string, time?: number): UnreachableError {
  const reason = Object.hasOwn(REFUSALS, refused) ? REFUSALS[refused as Refusal] : refused;
  const text = `node ${to}: the ${what} was refused: ${reason}`;
  if (refused === 'time') return new ClockError(text, time);
  return new UnreachableError(text, { lives: refused !== 'another' });
}

/** Limit of the head of a call or answer, in bytes: enough for the longest path that HTTP ports accept, sealed. */
export const MAX_HEAD = 64 * 1024;

type Headers = { readonly [name: string]: string | readonly string[] | undefined };

/** Headers with the fields of a call or an answer, and the proof of its sender. */
export function seal(secrets: Secrets, kind: Kind, content: Call | Answer): Record<string, string> {
  const text = Buffer.from(JSON.stringify(content)).toString('base64url');
  return { [`kiln-${kind}`]: text, 'kiln-mac': sign(secrets, kind, text) };
}

/** @returns undefined when it does not come from the cluster, or is malformed */
export function unseal(secrets: Secrets, kind: 'call', headers: Headers): Call | undefined;
export function unseal(secrets: Secrets, kind: 'answer', headers: Headers): Answer | undefined;
export function unseal(secrets: Secrets, kind: Kind, headers: Headers): Call | Answer | undefined {
  const text = headers[`kiln-${kind}`];
  const mac = headers['kiln-mac'];
  if (typeof text !== 'string' || typeof mac !== 'string' || !isSigned(secrets, kind, text, mac)) return undefined;
  const content = parse(Buffer.from(text, 'base64url').toString());
  return Value.Check(SCHEMAS[kind], content) ? content : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
