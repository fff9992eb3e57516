import Type, { type Static } from 'typebox';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { Session } from '../core/session.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OtherNodes, Reply } from '../peers/other-nodes.ts';
import { definePeerCall, STREAM_FIELDS } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StreamName } from '../directory/stream-key.ts';
import { SessionStatistics, sessionStatistics } from '../stats/session.ts';

const Stream = Type.Object(STREAM_FIELDS);
const One = Type.Object({ ...STREAM_FIELDS, id: Type.String() });
const LIST = definePeerCall('sessions/list', Stream, Type.Array(Type.String()));
/** Statistics of a session; null if the node does not have it. */
const STATISTICS = definePeerCall('sessions/statistics', One, Type.Union([SessionStatistics, Type.Null()]));
/** Disconnects a session. Answers whether the node had it. */
const KICK = definePeerCall('sessions/kick', One, Type.Boolean());
const KEEP_OUT = definePeerCall('sessions/keep-out', One, Type.Null());
/** Time limit for other nodes to learn of a kicked session that they did not have. */
const KEEP_OUT_MS = 2000;

/**
 * Sessions of a stream, here and behind the relays of every node, and those of its recordings. Used by the owner of the stream, or by
 * any node for one that is not live.
 */
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
      this.#keepOut(name, id);
      return null;
    });
  }

  /** Ids of all sessions; not `complete` when a node does not answer. */
  async list(name: StreamName): Promise<{ readonly ids: string[]; readonly complete: boolean }> {
    const replies = await this.#others.ask(LIST, name);
    const ids = new Set([...this.#ids(name), ...replies.flatMap(({ answer = [] }) => answer)]);
    return { ids: [...ids], complete: replies.every(answered) };
  }

  /** Statistics of a session; undefined when no node has it. */
  async statistics(name: StreamName, id: string): Promise<Static<typeof SessionStatistics> | undefined> {
    const [own] = this.#here(name, id);
    if (own !== undefined) return sessionStatistics(own);
    const replies = await this.#others.ask(STATISTICS, { ...name, id });
    return replies.flatMap(({ answer }) => answer ?? [])[0];
  }

  /** Disconnects a session, wherever it is, and rejects its id on all nodes. @returns false when no node has such a session */
  async kick(name: StreamName, id: string): Promise<boolean> {
    // rejected from the start: a client that another node disconnects may reconnect here at once
    const readmit = this.#keepOut(name, id);
    const own = this.#kickHere(name, id);
    const others = await this.#others.ask(KICK, { ...name, id });
    if (!own && !others.some(({ answer }) => answer)) {
      readmit();
      return false;
    }
    await this.#others.ask(KEEP_OUT, { ...name, id }, KEEP_OUT_MS);
    return true;
  }

  #application({ vhost, app }: StreamName): Application | undefined {
    return this.#registry.vhosts.get(vhost)?.applications.get(app);
  }

  #views(name: StreamName): InputStream[] {
    return this.#application(name)?.views(name.stream) ?? [];
  }

  #viewers(name: StreamName): Session[] {
    return this.#application(name)?.recordingViewers.of(name.stream) ?? [];
  }

  #ids(name: StreamName): string[] {
    const sessions = [...this.#views(name).flatMap((view) => [...view.sessions()]), ...this.#viewers(name)];
    return sessions.map(({ id }) => id);
  }

  /** Finds one session, or more if nodes could not ask each other about the id, or a viewer of recordings has several. */
  #here(name: StreamName, id: string): Session[] {
    const viewers = this.#viewers(name).filter((session) => session.id === id);
    return [...this.#views(name).flatMap((view) => view.session(id) ?? []), ...viewers];
  }

  /** Rejects an id on this node. @returns its undo */
  #keepOut(name: StreamName, id: string): () => void {
    const undo = this.#views(name).map(({ kicked }) => kicked.add(id));
    const application = this.#application(name);
    if (application?.config.publishers.playback !== undefined)
      undo.push(application.recordingViewers.keepOut(name.stream, id));
    return () => undo.forEach((readmit) => readmit());
  }

  /** @returns false when this node does not have the session */
  #kickHere(name: StreamName, id: string): boolean {
    const sessions = this.#here(name, id);
    for (const session of sessions) session.kick();
    return sessions.length > 0;
  }
}

function answered({ answer }: Reply<unknown>): boolean {
  return answer !== undefined;
}
