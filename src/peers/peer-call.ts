import Type, { type Static, type TSchema } from 'typebox';
import type { PeerRequest, PeerResponse } from '#cluster';
import { KilnError, kilnError, type ErrorCode } from '../errors.ts';
import { readJson } from '../lib/read-json.ts';

/**
 * A call between nodes of a cluster. Request and answer are JSON with a schema, and some answers carry bytes besides
 * (`WithBytes`). Nodes of different versions must understand each other: new fields are optional, and a new meaning gets a new
 * name.
 */
export interface PeerCall<Q extends TSchema = TSchema, A extends TSchema = TSchema> {
  /** Example: `live/list`. */
  readonly name: string;
  readonly request: Q;
  readonly answer: A;
}

/** An answer with bytes besides its JSON, such as a thumbnail. */
export interface WithBytes<T> {
  readonly answer: T;
  readonly bytes: Buffer;
}

/** Names of an input stream in a request. */
export const STREAM_FIELDS = { vhost: Type.String(), app: Type.String(), stream: Type.String() };

/** Header of an error: its name in src/errors.ts. The text is the body. */
const ERROR = 'kiln-error';
/** Header of an answer with bytes: its JSON, since the bytes are the body. */
const ANSWER = 'kiln-answer';
const NOTHING = Buffer.alloc(0);

export function definePeerCall<Q extends TSchema, A extends TSchema>(
  name: string,
  request: Q,
  answer: A,
): PeerCall<Q, A> {
  return { name, request, answer };
}

export function pathOf({ name }: PeerCall): string {
  return `/${name}`;
}

export function encodeRequest<Q extends TSchema>(call: PeerCall<Q>, request: Static<Q>): PeerRequest {
  return { method: 'POST', path: pathOf(call), headers: {}, body: Buffer.from(JSON.stringify(request)) };
}

/** @throws callMalformed */
export function decodeRequest<Q extends TSchema>({ name, request }: PeerCall<Q>, { body }: PeerRequest): Static<Q> {
  const value = readJson(request, body);
  if (value === undefined) throw kilnError('callMalformed', name);
  return value;
}

export function encodeAnswer(answer: unknown, bytes?: Buffer): PeerResponse {
  const text = JSON.stringify(answer);
  if (bytes === undefined) return { status: 200, headers: {}, body: Buffer.from(text) };
  return { status: 200, headers: { [ANSWER]: text }, body: bytes };
}

export function encodeError({ status, code, message }: KilnError): PeerResponse {
  return { status, headers: { [ERROR]: code }, body: Buffer.from(message) };
}

/** Answer to a call that this version does not know. */
export function unknownCall(): PeerResponse {
  return { status: 404, headers: {}, body: NOTHING };
}

/** @throws the error of the called node; callUnknown when it does not know the call, or not in this form; MalformedAnswerError */
export function decodeAnswer<A extends TSchema>(
  { name, answer: schema }: PeerCall<TSchema, A>,
  { status, headers, body }: PeerResponse,
): WithBytes<Static<A>> {
  const code = headers[ERROR];
  if (code === 'callMalformed' || (status === 404 && code === undefined)) throw kilnError('callUnknown');
  if (code !== undefined) throw new KilnError(code as ErrorCode, status, body.toString());
  if (status !== 200) throw new MalformedAnswerError(`${name} was answered with status ${status}`);
  const head = headers[ANSWER];
  const answer = readJson(schema, head === undefined ? body : Buffer.from(head));
  if (answer === undefined) throw new MalformedAnswerError(`the answer to ${name} does not match its schema`);
  return { answer, bytes: head === undefined ? NOTHING : body };
}

/** Error after which it is unknown whether the call was executed. */
export class MalformedAnswerError extends Error {
  override readonly name = 'MalformedAnswerError';
}
