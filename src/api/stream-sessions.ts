import { joinKey, splitKey, type PeerRequest, type PeerResponse } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { Session } from '../core/session.ts';
import type { InputStream } from '../core/stream.ts';
import { peerRequest, type OtherNodes } from '../origins/other-nodes.ts';
import type { PeerCalls } from '../origins/peer-calls.ts';
import type { StreamName } from '../origins/stream-key.ts';
import { sessionStatistics } from '../stats/session.ts';

const PREFIX = '/sessions/';
const MISSING: PeerResponse = { status: 404, headers: {}, body: Buffer.alloc(0) };
/** For nodes to hear of a session that they did not have. */
const TOLD_MS = 2000;

type SessionStatistics = ReturnType<typeof sessionStatistics>;

/** Sessions of a stream, here and behind the relays of every node: asked by the node that has the stream. */
export class StreamSessions {
  readonly #registry: Registry;
  readonly #others: OtherNodes;

  constructor(registry: Registry, others: OtherNodes, calls: PeerCalls) {
    this.#registry = registry;
    this.#others = others;
    calls.add(PREFIX, async (request) => this.#answer(request));
  }

  /** Ids of all of them, as far as their nodes can be reached. */
  async list(name: StreamName): Promise<string[]> {
    const replies = await this.#ask<readonly string[]>('GET', name);
    return [...new Set([...this.#ids(name), ...replies.flat()])];
  }

  /** @returns undefined when no node has such a session */
  async statistics(name: StreamName, id: string): Promise<SessionStatistics | undefined> {
    const [own] = this.#here(name, id);
    if (own !== undefined) return sessionStatistics(own);
    const [found] = await this.#ask<SessionStatistics>('GET', name, id);
    return found;
  }

  /** Disconnects one, wherever it is, and keeps it out of all nodes. @returns false when no node has such a session */
  async kick(name: StreamName, id: string): Promise<boolean> {
    // from the first moment on: who is disconnected elsewhere may be back before that is told
    const undo = this.#views(name).map(({ kicked }) => kicked.add(id));
    const own = this.#kickHere(name, id);
    const others = await this.#ask('DELETE', name, id);
    if (!own && others.length === 0) {
      for (const readmit of undo) readmit();
      return false;
    }
    await this.#others.ask(request('PUT', name, id), TOLD_MS);
    return true;
  }

  /** What the nodes answer that have something to say. */
  async #ask<T>(method: string, name: StreamName, ...id: string[]): Promise<T[]> {
    const replies = await this.#others.ask(request(method, name, ...id));
    return replies.flatMap(({ response }) => (response?.status === 200 ? [JSON.parse(response.body.toString()) as T] : []));
  }

  #answer({ method, path }: PeerRequest): PeerResponse {
    const [vhost = '', app = '', stream = '', id] = splitKey(path.slice(PREFIX.length));
    const name = { vhost, app, stream };
    if (id === undefined) return content(this.#ids(name));
    if (method === 'DELETE') return this.#kickHere(name, id) ? content(null) : MISSING;
    if (method === 'PUT') {
      for (const { kicked } of this.#views(name)) kicked.add(id);
      return content(null);
    }
    const [session] = this.#here(name, id);
    return session === undefined ? MISSING : content(sessionStatistics(session));
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

function request(method: string, { vhost, app, stream }: StreamName, ...id: string[]): PeerRequest {
  return peerRequest(method, PREFIX + joinKey(vhost, app, stream, ...id));
}

function content(value: unknown): PeerResponse {
  return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(value)) };
}
