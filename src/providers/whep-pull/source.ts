import { KilnError } from '../../errors.ts';
import type { Connection } from '../../core/source.ts';
import { endedBy } from '../../lib/ended-by.ts';
import { FaultLog } from '../../log/log.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { Call, type Caller } from '../../webrtc/call/call.ts';
import { parseEndpointUrl } from '../../webrtc/call/url.ts';
import { PullError } from '../pull/error.ts';
import type { OpenSource, PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { trackSink } from '../pull/track-sink.ts';
import { offeredMedia, planAnswered, type IngestPlan } from '../webrtc/accepted.ts';
import { Ingest, type IngestConfig } from '../webrtc/ingest.ts';
import { Reception } from '../webrtc/reception.ts';

/** Least wait for the first media that can be played. */
const MEDIA_MS = 10_000;
/** Limit of timers. */
const NEVER_MS = 2 ** 31 - 1;
/** Interval of requests for key frames, as of publishers over WebRTC. */
const KEY_FRAMES_MS = 3000;
/** Longest wait for a packet that is sent again. */
const HOLD_MS = 400;

/** Plays streams of WHEP endpoints (draft-ietf-wish-whep) that the guard allows. A server's certificate is verified. */
export function whepSource(caller: Caller): OpenSource {
  return async (target, options) => {
    const endpoint = parseEndpointUrl(target, 'whep');
    if (endpoint === undefined) {
      const why = target.includes('#') || cutsCredentials(target) ? ` (${FRAGMENT_FAULT})` : '';
      throw new PullError(`not a URL of WHEP: ${shownUrl(target)}${why}`);
    }
    const source = new WhepSource(await Call.open(caller, endpoint), options);
    try {
      await endedBy(options.signal, () => source.close(), source.open());
      return source;
    } catch (error) {
      const isLost = source.isLost;
      source.close();
      if (isLost) throw new PullError('the media worker has ended');
      throw error instanceof KilnError ? new PullError(error.message) : error;
    }
  };
}

/** One stream of a WHEP server. */
class WhepSource implements PullSource {
  readonly #call: Call;
  readonly #options: SourceOptions;
  readonly #faults: FaultLog;
  readonly #reception: Reception;
  #plans: readonly IngestPlan[] = [];
  #ingest: Ingest | undefined;
  #sink: SourceSink | undefined;
  /** Why it ended before `play`. */
  #over: string | undefined;
  #closed = false;

  constructor(call: Call, options: SourceOptions) {
    const { worker, link } = call;
    this.#call = call;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    this.#reception = new Reception({ worker, transport: link.transport, onLost: (reason) => this.#end(reason) });
    call.on('gone', (reason) => this.#end(reason));
    call.on('received', (bytes) => this.#sink?.received(bytes));
  }

  /** Connects. @throws PullError, notAcceptable or mediaUnavailable */
  async open(): Promise<void> {
    const offered = offeredMedia(true);
    const answer = await this.#call.offer(offered, '-');
    try {
      this.#plans = planAnswered(offered, answer);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      throw new PullError('the server sends neither video nor audio in a codec that was offered');
    }
    await this.#reception.take(this.#plans);
    await this.#call.connect(answer);
  }

  /** Whether its media worker has ended. */
  get isLost(): boolean {
    return this.#call.worker.closed;
  }

  get connection(): Connection | undefined {
    return this.#call.connection;
  }

  get trouble(): string | undefined {
    return this.#faults.latest;
  }

  async play(sink: SourceSink): Promise<void> {
    if (this.#over !== undefined) throw new PullError(this.#over);
    const { clock, ignoresReports, silenceMs = NEVER_MS } = this.#options;
    const config: IngestConfig = {
      timestampMode: clock.keepsTimes ? 'Original' : 'ZeroBased',
      rtcpBasedTimestamp: !ignoresReports,
      timeout: Math.max(MEDIA_MS, silenceMs),
      packetSilenceTimeoutMs: silenceMs,
      firInterval: KEY_FRAMES_MS,
      rtx: { maxHoldMs: HOLD_MS },
    };
    this.#sink = sink;
    this.#ingest = new Ingest({
      sink: {
        ...trackSink(sink, clock),
        lost: (packets) => sink.lost(packets),
        trouble: (code, description) => sink.trouble(code, description),
      },
      config,
      plans: this.#plans,
      faults: this.#faults,
      onKeyWanted: (plan) => this.#reception.requestKeyFrame(plan),
      onFailure: (reason) => this.#end(reason),
    });
    this.#reception.feed(this.#ingest);
    this.#ingest.wantKeys();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ingest?.close();
    this.#reception.close();
    this.#call.close();
    this.#faults.close();
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#over = reason;
    this.#sink?.end(reason);
  }
}
