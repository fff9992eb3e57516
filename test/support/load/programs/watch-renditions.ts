import { parseRtp } from '../../webrtc/rtp.ts';
import { until } from '../../time/until.ts';
import { WhepPeer } from '../../webrtc/whep-peer.ts';
import { serve } from '../program.ts';
import { findStamp, monotonic } from '../stamp.ts';
import { percentile } from '../statistics.ts';

const CLOCK = 90_000;
/** NAL unit types of RFC 6184, the lowest five bits of a payload. */
const NAL = { mask: 0x1f, idr: 5, sps: 7, aggregate: 24, fragment: 28 };

/** One frame of a rendition, when its last packet was there. */
interface Arrival {
  readonly at: number;
  readonly timestamp: number;
  readonly key: boolean;
  /** Number of the frame, where the stamp of the publisher is still in it. */
  readonly frame: number | undefined;
}

/** Notes the frames of one rendition. */
class Rendition {
  readonly arrivals: Arrival[] = [];
  readonly #peer = new WhepPeer({ audio: false, onRtp: (_kind, packet) => this.#packet(packet) });
  #frame: number | undefined;
  #key = false;

  static async start(url: string): Promise<Rendition> {
    const rendition = new Rendition();
    await rendition.#peer.play(url);
    return rendition;
  }

  #packet(packet: Buffer): void {
    const { payload, marker, timestamp } = parseRtp(packet);
    if (payload.length < 2) return;
    this.#frame ??= findStamp(payload)?.frame;
    this.#key ||= isKey(payload);
    if (!marker) return;
    this.arrivals.push({ at: monotonic(), timestamp, key: this.#key, frame: this.#frame });
    this.#frame = undefined;
    this.#key = false;
  }
}

let source: Rendition | undefined;
let encoded: Rendition[] = [];

const commands = {
  /** Watches the source as it is, and what is encoded of it; waits until each has shown something. */
  async start(urls: { readonly source: string; readonly encoded: readonly string[] }): Promise<void> {
    source = await Rendition.start(urls.source);
    encoded = await Promise.all(urls.encoded.map((url) => Rendition.start(url)));
    await until('a picture of every rendition', () =>
      [source, ...encoded].every((one) => (one?.arrivals.length ?? 0) > 0),
    );
  },

  /**
   * How much later than the source's own frames the encoded ones were there, in milliseconds.
   * @param gop frames from key frame to key frame of the source; delays are shorter than that
   */
  report({ framerate, gop }: { framerate: number; gop: number }) {
    const passed = source?.arrivals ?? [];
    const delays = encoded.flatMap(({ arrivals }) => delaysOf(arrivals, passed, framerate, gop));
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99), frames: delays.length };
  },
};

export type RenditionCommands = typeof commands;

serve(commands);

/** Encoded key frames are those of the source: so frames are matched without a stamp that survives encoding. */
function delaysOf(arrivals: readonly Arrival[], passed: readonly Arrival[], framerate: number, gop: number): number[] {
  const anchor = arrivals.findIndex(({ key, at }) => key && at > (passed[gop]?.at ?? Infinity));
  const first = arrivals[anchor];
  if (first === undefined) return [];
  const start = passed.findLast(({ frame = -1, at }) => frame % gop === 0 && at <= first.at)?.frame ?? Number.NaN;
  const times = new Map(passed.map(({ frame, at }) => [frame, at]));
  return arrivals.slice(anchor).flatMap(({ timestamp, at }) => {
    const steps = Math.round((((timestamp - first.timestamp) >>> 0) * framerate) / CLOCK);
    const sent = times.get(start + steps);
    return sent === undefined ? [] : at - sent;
  });
}

function isKey(payload: Buffer): boolean {
  const type = payload.readUInt8(0) & NAL.mask;
  const carried = type === NAL.fragment ? payload.readUInt8(1) & NAL.mask : type;
  return carried === NAL.idr || carried === NAL.sps || carried === NAL.aggregate;
}
