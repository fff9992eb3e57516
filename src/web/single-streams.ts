import { joinKey, splitKey, type NodeIdentity } from '#cluster';
import type { OtherNodes } from '../origins/other-nodes.ts';
import { readJson } from '../origins/json.ts';
import { StreamsTold, type LiveStream, type PlayablePublisher } from './streams.ts';

/** What is asked of a node for so long goes in one call. */
const GATHER_MS = 50;
/** How long an answer is good for whoever asks next. */
const FRESH_MS = 1000;
/** Names in one call. */
const MAX_NAMES = 500;

/** One stream of a virtual host. */
export interface StreamPath {
  readonly app: string;
  readonly stream: string;
}

/** Where a stream is asked for: at its owner, for those who play by `serves`. */
export interface Asked {
  readonly owner: NodeIdentity;
  readonly vhost: string;
  readonly serves: readonly PlayablePublisher[];
}

/** Names that go in one call, and what comes of it. */
interface Round {
  readonly names: Set<string>;
  readonly answer: Promise<ReadonlyMap<string, LiveStream>>;
}

/**
 * Streams that one other node has, each asked for by its name: how often nodes call each other for it does not grow with
 * the streams, nor with who asks.
 */
export class SingleStreams {
  readonly #others: OtherNodes;
  readonly #path: string;
  /** What still gathers names, by where it goes. */
  readonly #open = new Map<string, Round>();
  /** What knows a name, or is about to. */
  readonly #rounds = new Map<string, Round>();

  /** @param path of the call, in front of virtual host and publishers */
  constructor(others: OtherNodes, path: string) {
    this.#others = others;
    this.#path = path;
  }

  /** The stream as its owner tells of it; undefined when that one does not have it, or cannot be reached. */
  async get(asked: Asked, { app, stream }: StreamPath): Promise<LiveStream | undefined> {
    const { owner, vhost, serves } = asked;
    const place = joinKey(owner.id, owner.incarnation, vhost, serves.join());
    const name = joinKey(app, stream);
    const round = this.#rounds.get(joinKey(place, name)) ?? this.#join(place, name, asked);
    return (await round.answer).get(name);
  }

  #join(place: string, name: string, asked: Asked): Round {
    let round = this.#open.get(place);
    if (round === undefined || round.names.size >= MAX_NAMES) {
      round = this.#begin(place, asked);
      this.#open.set(place, round);
    }
    round.names.add(name);
    this.#rounds.set(joinKey(place, name), round);
    return round;
  }

  #begin(place: string, asked: Asked): Round {
    const { promise: gathered, resolve } = Promise.withResolvers<void>();
    const names = new Set<string>();
    const round: Round = { names, answer: gathered.then(() => this.#ask(asked, names)) };
    setTimeout(() => {
      if (this.#open.get(place) === round) this.#open.delete(place);
      resolve();
    }, GATHER_MS);
    const forget = (): void => {
      for (const name of names) this.#rounds.delete(joinKey(place, name));
    };
    const age = (): void => void setTimeout(forget, FRESH_MS).unref();
    round.answer.then(age, forget);
    return round;
  }

  async #ask({ owner, vhost, serves }: Asked, names: ReadonlySet<string>): Promise<ReadonlyMap<string, LiveStream>> {
    const path = `${this.#path}${joinKey(vhost, serves.join())}`;
    const response = await this.#others.askOne(owner, {
      method: 'POST',
      path,
      headers: {},
      body: Buffer.from([...names].join('\n')),
    });
    if (response?.status !== 200) return new Map();
    const { streams = [] } = readJson(StreamsTold, response.body) ?? {};
    return new Map(streams.map((live) => [joinKey(live.app, live.stream), live]));
  }
}

/** The names in the body of such a call. */
export function readNames(body: Buffer): StreamPath[] {
  return body
    .toString()
    .split('\n')
    .slice(0, MAX_NAMES)
    .map((name) => {
      const [app = '', stream = ''] = splitKey(name);
      return { app, stream };
    });
}
