import { joinKey } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';
import { LIVE_STREAMS, NAMED_STREAMS } from './live-calls.ts';
import { SingleStreams, type StreamPath } from './single-streams.ts';
import { listStreams, MAX_LISTED, type LiveStream, type PlayablePublisher, type StreamList } from './streams.ts';

/** How long answers of other nodes are reused. */
const FRESH_MS = 1000;

interface Answer {
  readonly streams: Promise<readonly LiveStream[]>;
  readonly at: number;
}

export interface LiveStreamsOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
}

/** The live streams of all nodes, in their public form. */
export class LiveStreams {
  readonly #options: LiveStreamsOptions;
  readonly #singles: SingleStreams;
  /** Streams of all other nodes, by the publishers that play them. */
  readonly #answers = new WeakMap<VirtualHost, Map<string, Answer>>();

  constructor(options: LiveStreamsOptions) {
    this.#options = options;
    this.#singles = new SingleStreams(options.others);
    const { registry, calls } = options;
    calls.answer(LIVE_STREAMS, ({ vhost, serves }) => ({
      streams: [...listStreams(registry.vhost(vhost), serves).streams],
    }));
    calls.answer(NAMED_STREAMS, ({ vhost, serves, names }) => ({
      streams: names.flatMap((only) => listStreams(registry.vhost(vhost), serves, only).streams),
    }));
  }

  /** The live streams of a virtual host that can be played by `serves`, with their viewers on all nodes. */
  async list(vhost: VirtualHost, serves: readonly PlayablePublisher[]): Promise<StreamList> {
    const own = listStreams(vhost, serves);
    if (own.restricted) return own;
    const elsewhere = await this.#elsewhere(vhost, serves);
    if (elsewhere.length === 0) return own;
    const streams = joined([...own.streams, ...elsewhere]);
    return { ...own, streams: streams.slice(0, MAX_LISTED), more: own.more || streams.length > MAX_LISTED };
  }

  /**
   * Lists one stream only. Its viewers are those that its owner and this node count, without WebRTC viewers of other nodes,
   * which neither knows.
   */
  async one(vhost: VirtualHost, serves: readonly PlayablePublisher[], only: StreamPath): Promise<StreamList> {
    const own = listStreams(vhost, serves, only);
    const application = vhost.applications.get(only.app);
    if (own.restricted || application === undefined || application.outputs.has(only.stream)) return own;
    const owner = this.#options.directory.known(application, only.stream)?.owner;
    const live = owner && (await this.#singles.get({ owner, vhost: vhost.name, serves }, only));
    return live === undefined ? own : { ...own, streams: joined([...own.streams, live]) };
  }

  #elsewhere(vhost: VirtualHost, serves: readonly PlayablePublisher[]): Promise<readonly LiveStream[]> {
    const answers = this.#answers.get(vhost) ?? new Map<string, Answer>();
    this.#answers.set(vhost, answers);
    const key = serves.join();
    const now = performance.now();
    const last = answers.get(key);
    if (last !== undefined && now - last.at <= FRESH_MS) return last.streams;
    const streams = this.#ask(vhost, serves);
    answers.set(key, { streams, at: now });
    return streams;
  }

  async #ask({ name }: VirtualHost, serves: readonly PlayablePublisher[]): Promise<readonly LiveStream[]> {
    if (this.#options.directory.remoteOutputs(name).next().done) return [];
    const replies = await this.#options.others.ask(LIVE_STREAMS, { vhost: name, serves: [...serves] });
    return replies.flatMap(({ answer }) => answer?.streams ?? []);
  }
}

/** Each stream once, with the viewers that it has on all nodes. */
function joined(streams: readonly LiveStream[]): LiveStream[] {
  const byName = new Map<string, LiveStream>();
  for (const stream of streams) {
    const key = joinKey(stream.app, stream.stream);
    const known = byName.get(key);
    const [first, other] = known === undefined || isBetter(stream, known) ? [stream, known] : [known, stream];
    byName.set(key, { ...first, viewers: first.viewers + (other?.viewers ?? 0) });
  }
  return [...byName.values()];
}

/** The node that has a stream knows since when; of those that relay it, the one that has done so for longest. */
function isBetter(one: LiveStream, other: LiveStream): boolean {
  if (one.relayed !== other.relayed) return other.relayed === true;
  return one.since < other.since;
}
