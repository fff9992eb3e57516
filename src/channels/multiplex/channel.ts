import type { Application } from '../../core/application.ts';
import type { Packet } from '../../core/packet.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { toSeconds } from '../../core/timebase.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import { Passthrough } from '../../providers/intake/passthrough.ts';
import { ChannelError } from '../sources/error.ts';
import type { LiveSources } from '../sources/live-sources.ts';
import { channelPlaylists } from './playlists.ts';
import type { MultiplexReport } from './report.ts';
import { SourceLine } from './source-line.ts';
import type { MultiplexSpec } from './spec.ts';
import { TrackIds } from './track-map.ts';

export interface MultiplexChannelOptions {
  readonly application: Application;
  readonly name: string;
  readonly spec: MultiplexSpec;
  readonly sources: Pick<LiveSources, 'open'>;
  /**
   * Claims the stream name of the channel; undefined when it is unavailable, or the signal has aborted.
   * @throws KilnError
   */
  readonly publish: () => Promise<InputStream | undefined>;
  /** Whether a packet may still be written to the published stream. */
  readonly passes: (packet: Packet) => boolean;
  /**
   * Set for a channel that stands by for another node: called when it could begin; resolves when it is to take over.
   * It then begins with the last common key frame instead of the first.
   */
  readonly turn?: (() => Promise<void>) | undefined;
  /** Ends the stream that `publish` returned. */
  readonly leave: (input: InputStream, reason: string) => void;
  readonly log: Logger;
}

const CHECK_MS = 50;
/** Pause before the sources are opened again after an end, unless the channel played for this long. */
const AGAIN_MS = 1000;
const LASTING_MS = 5000;
/** Key frames of different sources at most this far apart belong together. */
const TOGETHER_MS = 200;

/**
 * One stream made of tracks of other streams. It waits until every source has its tracks, plays until one ends, and
 * waits again.
 */
export class MultiplexChannel {
  readonly #options: MultiplexChannelOptions;
  #state: MultiplexReport['state'] = 'None';
  #waitsFor = '';

  constructor(options: MultiplexChannelOptions) {
    this.#options = options;
  }

  get report(): MultiplexReport {
    const { application, name } = this.#options;
    if (this.#state !== 'Pulling') return { state: this.#state };
    const channel = `${application.internalName}/${name}`;
    return { state: 'Pulling', pullingMessage: `Multiplex Channel : ${channel}: ${this.#waitsFor}` };
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    let logged = '';
    while (!signal.aborted) {
      const since = performance.now();
      const reason = await this.#round(signal);
      if (signal.aborted) break;
      this.#state = 'Pulling';
      this.#waitsFor = reason;
      const hasLasted = performance.now() - since >= LASTING_MS;
      if (hasLasted || reason !== logged)
        log.warn({ reason }, 'the multiplex channel has ended and pulls its sources again');
      logged = reason;
      if (!hasLasted) await pause(AGAIN_MS, signal);
    }
    this.#state = 'Stopped';
  }

  /** Runs from opening the sources to the end of one of them. @returns why it ended */
  async #round(signal: AbortSignal): Promise<string> {
    const { spec, publish, leave, turn } = this.#options;
    const stop = new AbortController();
    const over = Promise.withResolvers<string>();
    let isOver = false;
    const end = (reason: string): void => {
      isOver = true;
      over.resolve(reason);
    };
    const onAbort = (): void => end('the channel was ended');
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    let input: InputStream | undefined;
    const lines = this.#lines(spec, end, () => input);
    const runs = lines.map((line) => line.run(stop.signal));
    Promise.all(runs).catch(over.reject);
    let reason = '';
    try {
      await Promise.race([this.#ready(lines, stop.signal), over.promise]);
      if (!isOver && turn !== undefined) {
        await Promise.race([turn(), over.promise]);
        // the buffered start may have been dropped since
        await Promise.race([this.#ready(lines, stop.signal), over.promise]);
      }
      if (!isOver) {
        this.#waitsFor = 'Wait for the name of the channel';
        input = await publish();
        if (input === undefined) end(this.#waitsFor);
      }
      if (input !== undefined && !isOver) this.#play(input, lines, end);
      reason = await over.promise;
      return reason;
    } catch (error) {
      if (!(error instanceof ChannelError || error instanceof KilnError)) throw error;
      reason = error.message;
      return reason;
    } finally {
      signal.removeEventListener('abort', onAbort);
      stop.abort();
      if (input !== undefined) leave(input, reason);
      await Promise.allSettled(runs);
    }
  }

  #lines(spec: MultiplexSpec, end: (reason: string) => void, input: () => InputStream | undefined): SourceLine[] {
    const { application, name, sources } = this.#options;
    const silenceMs = application.config.providers?.multiplex?.packetSilenceTimeoutMs ?? 0;
    const ids = new TrackIds();
    const lines = spec.sourceStreams.map(
      (source, index) =>
        new SourceLine({
          spec: source,
          sources,
          by: { application, name },
          idOf: (item, id) => ids.of(index, item, id),
          silenceMs,
          onTracks: () => input()?.setTracks(lines.flatMap((line) => line.channelTracks)),
          onPacket: (packet) => this.#write(input(), packet),
          onOver: end,
        }),
    );
    return lines;
  }

  /** Resolves as soon as all sources can play. */
  async #ready(lines: readonly SourceLine[], signal: AbortSignal): Promise<void> {
    this.#state = 'Pulling';
    while (!signal.aborted) {
      const found = beginning(lines);
      if (typeof found === 'number') return;
      this.#waitsFor = `Wait for ${found}`;
      await pause(CHECK_MS, signal);
    }
  }

  #play(input: InputStream, lines: readonly SourceLine[], end: (reason: string) => void): void {
    const { application, spec, turn } = this.#options;
    // a source may have ended while the name was claimed
    const zero = beginning(lines, turn !== undefined);
    if (typeof zero === 'string') return end(`Wait for ${zero}`);
    if (spec.bypassTranscoder) new Passthrough(application, input, end).setPlaylists(channelPlaylists(spec.playlists));
    input.once('close', end);
    input.on('keyWanted', () => {
      for (const line of lines) line.wantKey();
    });
    const kept = lines.flatMap((line) => line.play(zero)).sort((one, other) => secondsOf(one) - secondsOf(other));
    input.setTracks(lines.flatMap((line) => line.channelTracks));
    for (const packet of kept) this.#write(input, packet);
    this.#state = 'Playing';
  }

  #write(input: InputStream | undefined, packet: Packet): void {
    if (input === undefined || !this.#options.passes(packet)) return;
    input.counters.received(packet.data.length);
    input.write(packet);
  }
}

/**
 * Finds a time where a channel can begin: with a key frame, from which on all sources are buffered.
 * @param goesOn begin with the last key frame that all sources have, instead of the first
 * @returns time 0 of the channel, in milliseconds of the monotonic clock; why it cannot begin otherwise
 */
function beginning(lines: readonly SourceLine[], goesOn = false): number | string {
  const now = performance.now();
  for (const line of lines) {
    const waitsFor = line.waitsFor(now);
    if (waitsFor !== undefined) return waitsFor;
  }
  const complete = Math.max(...lines.map(({ heldSince }) => heldSince ?? -Infinity));
  const videos = lines.filter(({ hasVideo }) => hasVideo);
  if (videos.length === 0) return complete;
  const keysFrom = (time: number): number[] => videos.flatMap((line) => line.keyFrom(time) ?? []);
  const first = Math.min(...keysFrom(complete));
  const last = Math.min(...videos.map((line) => line.lastKey ?? -Infinity));
  const key = goesOn ? Math.max(first, last) : first;
  if (key === Infinity) return 'a key frame';
  // streams of one encoder on several connections do not arrive at exactly the same time
  return Math.min(...keysFrom(key - TOGETHER_MS));
}

function secondsOf({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}
