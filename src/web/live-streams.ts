import { joinKey, splitKey, type PeerRequest, type PeerResponse } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import type { OtherNodes } from '../origins/other-nodes.ts';
import type { PeerCalls } from '../origins/peer-calls.ts';
import type { StreamDirectory } from '../origins/stream-directory.ts';
import { listStreams, MAX_LISTED, type LiveStream, type PlayablePublisher, type StreamList } from './streams.ts';

const PREFIX = '/live/';
/** How long what other nodes said is good for whoever asks next. */
const FRESH_MS = 1000;

/** One stream of a virtual host. */
interface Only {
  readonly app: string;
  readonly stream: string;
}

interface Asked {
  readonly answer: Promise<readonly LiveStream[]>;
  readonly at: number;
}

export interface LiveStreamsOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
}

/** What is live on any node, as anybody may see it. */
export class LiveStreams {
  readonly #options: LiveStreamsOptions;
  readonly #asked = new Map<string, Asked>();

  constructor(options: LiveStreamsOptions) {
    this.#options = options;
    options.calls.add(PREFIX, async (request) => this.#answer(request));
  }

  /** The live streams of a virtual host, or of one name of it, that can be played by `serves`. */
  async list(vhost: VirtualHost, serves: readonly PlayablePublisher[], only?: Only): Promise<StreamList> {
    const own = listStreams(vhost, serves, only);
    if (own.restricted || !this.#isElsewhere(vhost, only)) return own;
    const streams = joined([...own.streams, ...(await this.#elsewhere(vhost, serves, only))]);
    return { ...own, streams: streams.slice(0, MAX_LISTED), more: own.more || streams.length > MAX_LISTED };
  }

  #isElsewhere(vhost: VirtualHost, only: Only | undefined): boolean {
    for (const { app, output } of this.#options.directory.remoteOutputs(vhost.name)) {
      if (only === undefined || (only.app === app && only.stream === output)) return true;
    }
    return false;
  }

  #elsewhere(vhost: VirtualHost, serves: readonly PlayablePublisher[], only: Only | undefined): Promise<readonly LiveStream[]> {
    const key = joinKey(vhost.name, serves.join(), ...(only === undefined ? [] : [only.app, only.stream]));
    const now = performance.now();
    for (const [other, { at }] of this.#asked) if (now - at > FRESH_MS) this.#asked.delete(other);
    const known = this.#asked.get(key);
    if (known !== undefined) return known.answer;
    const answer = this.#ask(key);
    this.#asked.set(key, { answer, at: now });
    return answer;
  }

  async #ask(key: string): Promise<readonly LiveStream[]> {
    const replies = await this.#options.others.ask({ method: 'GET', path: `${PREFIX}${key}`, headers: {}, body: Buffer.alloc(0) });
    return replies.flatMap(({ response }) =>
      response?.status === 200 ? (JSON.parse(response.body.toString()) as StreamList).streams : []);
  }

  #answer({ path }: PeerRequest): PeerResponse {
    const [name = '', serves = '', app, stream] = splitKey(path.slice(PREFIX.length));
    const vhost = this.#options.registry.vhosts.get(name);
    if (vhost === undefined) return { status: 404, headers: {}, body: Buffer.alloc(0) };
    const only = app === undefined || stream === undefined ? undefined : { app, stream };
    const list = listStreams(vhost, serves.split(',') as PlayablePublisher[], only);
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(list)) };
  }
}

/** Each stream once, with the viewers that it has on all nodes. */
function joined(streams: readonly LiveStream[]): LiveStream[] {
  const byName = new Map<string, LiveStream>();
  for (const stream of streams) {
    const key = joinKey(stream.app, stream.stream);
    const known = byName.get(key);
    // the node that has it has had it longest
    const [first, other] = known === undefined || stream.since < known.since ? [stream, known] : [known, stream];
    byName.set(key, { ...first, viewers: first.viewers + (other?.viewers ?? 0) });
  }
  return [...byName.values()];
}
