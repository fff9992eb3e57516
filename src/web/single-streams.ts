import { joinKey, type NodeIdentity } from '#cluster';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { MAX_NAMES, NAMED_STREAMS } from './live-calls.ts';
import type { LiveStream, PlayablePublisher } from './streams.ts';

/** Requests for streams of a node within this time go in one call. */
const GATHER_MS = 50;
/** How long an answer is reused. */
const FRESH_MS = 1000;

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
  readonly names: Map<string, StreamPath>;
  readonly answer: Promise<ReadonlyMap<string, LiveStream>>;
}

/**
 * Streams that one other node has, each asked for by its name: how often nodes call each other for it does not grow with
 * the streams, nor with who asks.
 */
export class SingleStreams {
  readonly #others: OtherNodes;
  /** Rounds that still gather names, by node, virtual host and publishers. */
  readonly #open = new Map<string, Round>();
  /** Rounds by the stream names that they ask for. */
  readonly #rounds = new Map<string, Round>();

  constructor(others: OtherNodes) {
    this.#others = others;
  }

  /** The stream as its owner reports it; undefined when the owner does not have it or cannot be reached. */
  async get(asked: Asked, only: StreamPath): Promise<LiveStream | undefined> {
    const { owner, vhost, serves } = asked;
    const place = joinKey(owner.id, owner.incarnation, vhost, serves.join());
    const name = joinKey(only.app, only.stream);
    const round = this.#rounds.get(joinKey(place, name)) ?? this.#join(place, only, asked);
    return (await round.answer).get(name);
  }

  #join(place: string, { app, stream }: StreamPath, asked: Asked): Round {
    let round = this.#open.get(place);
    if (round === undefined || round.names.size >= MAX_NAMES) {
      round = this.#begin(place, asked);
      this.#open.set(place, round);
    }
    const name = joinKey(app, stream);
    round.names.set(name, { app, stream });
    this.#rounds.set(joinKey(place, name), round);
    return round;
  }

  #begin(place: string, asked: Asked): Round {
    const { promise: gathered, resolve } = Promise.withResolvers<void>();
    const names = new Map<string, StreamPath>();
    const round: Round = { names, answer: gathered.then(() => this.#ask(asked, [...names.values()])) };
    setTimeout(() => {
      if (this.#open.get(place) === round) this.#open.delete(place);
      resolve();
    }, GATHER_MS);
    const forget = (): void => {
      for (const name of names.keys()) this.#rounds.delete(joinKey(place, name));
    };
    const age = (): void => void setTimeout(forget, FRESH_MS).unref();
    round.answer.then(age, forget);
    return round;
  }

  async #ask({ owner, vhost, serves }: Asked, names: StreamPath[]): Promise<ReadonlyMap<string, LiveStream>> {
    const { answer } = await this.#others.askOne(owner, NAMED_STREAMS, { vhost, serves: [...serves], names });
    return new Map(answer?.streams.map((live) => [joinKey(live.app, live.stream), live]));
  }
}
