import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../../soak/random.ts';
import type { Kiln } from '../server/kiln.ts';
import { until } from '../time/until.ts';
import type { PublishedStream, ServerState } from './state.ts';

export const NAMES = ['one', 'two', 'three'];
/** `one` makes applications on demand; `default` is declared in Server.xml. */
export const WITH_TEMPLATE = 'one';

/** What a random call works with. */
export interface Turn {
  readonly state: ServerState;
  readonly random: Random;
  readonly nodes: readonly Kiln[];
  /** The node that is called. */
  readonly node: Kiln;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Makes one call and holds its answer to the state, which it changes as one server would. Answers what it was. */
export type Call = (turn: Turn) => Promise<string>;

export interface Asked<Response> {
  readonly status: number;
  readonly response: Response;
}

/** A call that is to be answered so. @throws when it is not */
export async function ask<Response>(
  { node }: Turn,
  method: string,
  path: string,
  wanted: number,
  body?: unknown,
): Promise<Asked<Response>> {
  const answer = await node.api<Response>(path, method, body);
  if (answer.status !== wanted)
    throw new Error(`${method} ${path}: ${answer.status} instead of ${wanted}: ${answer.body.message}`);
  return { status: answer.status, response: answer.body.response };
}

/** @throws when a list has other names, in any order, than wanted */
export function same(what: string, actual: readonly string[], wanted: Iterable<string>): void {
  const [is, should] = [[...actual].sort(), [...wanted].sort()];
  if (!isDeepStrictEqual(is, should)) throw new Error(`${what}: [${is.join()}] instead of [${should.join()}]`);
}

/** What nodes tell each other once a second: true soon, and then it stays so. @throws when it does not become true */
export async function soon(what: string, probe: () => Promise<boolean>): Promise<void> {
  await until(what, probe);
}

/** Whoever published into what is gone hears so. */
export async function ended(streams: readonly PublishedStream[]): Promise<void> {
  await Promise.all(streams.map(({ client }) => client.client.ended()));
}
