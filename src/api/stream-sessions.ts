import Type, { type Static } from 'typebox';
import type { Registry } from '../core/registry.ts';
import type { Session } from '../core/session.ts';
import type { InputStream } from '../core/stream.ts';
import type { OtherNodes, Reply } from '../peers/other-nodes.ts';
import { definePeerCall, STREAM_FIELDS } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StreamName } from '../directory/stream-key.ts';
import { SessionStatistics, sessionStatistics } from '../stats/session.ts';

const Stream = Type.Object(STREAM_FIELDS);
const One = Type.Object({ ...STREAM_FIELDS, id: Type.String() });
const LIST = definePeerCall('sessions/list', Stream, Type.Array(Type.String()));
/** null for a session that the node does not have. */
const STATISTICS = definePeerCall('sessions/statistics', One, Type.Union([SessionStatistics, Type.Null()]));
/** Disconnects a session. Answers whether the node had it. */
const KICK = definePeerCall('sessions/kick', One, Type.Boolean());
const KEEP_OUT = definePeerCall('sessions/keep-out', One, Type.Null());
/** For nodes to hear of a session that they did not have. */
const TOLD_MS = 2000;

/** Sessions of a stream, here and behind the relays of every node: asked by the node that has the stream. */
export class StreamSessions {
  readonly #registry: Registry;
  readonly #others: OtherNodes;

  constructor(registry: Registry, others: OtherNodes, calls: PeerCalls) {
    this.#registry = registry;
    this.#others = others;
    calls.answer(LIST, (name) => this.#ids(name));
    calls.answer(STATISTICS, ({ id, ...name }) => {
      const [session] = this.#here(name, id);
      return session === undefined ? null : sessionStatistics(session);
    });
    calls.answer(KICK, ({ id, ...name }) => this.#kickHere(name, id));
    calls.answer(KEEP_OUT, ({ id, ...name }) => {
      for (const { kicked } of this.#views(name)) kicked.add(id);
      return null;
    });
  }

  /** Ids of all of them; not `complete` when a node does not tell its own. */
  async list(name: StreamName): Promise<{ readonly ids: string[]; readonly complete: boolean }> {
    const replies = await this.#others.ask(LIST, name);
    const ids = new Set([...this.#ids(name), ...replies.flatMap(({ answer = [] }) => answer)]);
    return { ids: [...ids], complete: replies.every(answered) };
  }

  /** @returns undefined when no node has such a session */
  async statistics(name: StreamName, id: string): Promise<Static<typeof SessionStatistics> | undefined> {
    const [own] = this.#here(name, id);
    if (own !== undefined) return sessionStatistics(own);
    const replies = await this.#others.ask(STATISTICS, { ...name, id });
    return replies.flatMap(({ answer }) => answer ?? [])[0];
  }

  /** Disconnects one, wherever it is, and keeps it out of all nodes. @returns false when no node has such a session */
  async kick(name: StreamName, id: string): Promise<boolean> {
    // from the first moment on: who is disconnected elsewhere may be back before that is told
    const undo = this.#views(name).map(({ kicked }) => kicked.add(id));
    const own = this.#kickHere(name, id);
    const others = await this.#others.ask(KICK, { ...name, id });
    if (!own && !others.some(({ answer }) => answer)) {
      for (const readmit of undo) readmit();
      return false;
    }
    await this.#others.ask(KEEP_OUT, { ...name, id }, TOLD_MS);
    return true;
  }

  #views({ vhost, app, stream }: StreamName): InputStream[] {
    return this.#registry.vhosts.get(vhost)?.applications.get(app)?.views(stream) ?? [];
  }

  #ids(name: StreamName): string[] {
    return this.#views(name).flatMap((view) => Array.from(view.sessions(), ({ id }) => id));
  }

  /** One, but where nodes could not ask each other. */
  #here(name: StreamName, id: string): Session[] {
    return this.#views(name).flatMap((view) => view.session(id) ?? []);
  }

  /** @returns false when there is none */
  #kickHere(name: StreamName, id: string): boolean {
    const sessions = this.#here(name, id);
    for (const session of sessions) session.kick();
    return sessions.length > 0;
  }
}

/** Whether a node has said what it has. */
function answered({ answer }: Reply<unknown>): boolean {
  return answer !== undefined;
}
