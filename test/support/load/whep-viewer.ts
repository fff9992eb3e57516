import { parseRtp } from '../webrtc/rtp.ts';
import { WhepPeer } from '../webrtc/whep-peer.ts';
import { FrameLog } from './frame-log.ts';
import { findStamp, monotonic, type Stamp } from './stamp.ts';

/** Watches a stream by WHEP and notes which stamped frames came whole, and when. */
export class WhepViewer {
  readonly frames = new FrameLog();
  /** Milliseconds from a frame's stamp to its last packet. */
  delays: number[] = [];
  packets = 0;
  lost = 0;
  readonly started = monotonic();
  /** When the first whole frame was there, which is a key frame, in milliseconds of the stamps' clock. */
  firstFrame = 0;
  readonly #peer: WhepPeer;
  #sequence: number | undefined;
  #stamp: Stamp | undefined;
  /** A packet of the present frame is missing. */
  #broken = false;

  private constructor(audio: boolean) {
    this.#peer = new WhepPeer({ audio, onRtp: (kind, packet) => kind === 'video' && this.#packet(packet) });
  }

  /** @param audio takes the stream's audio, too, and ignores it @throws Error when the server does not take its offer */
  static async start(url: string, audio = false): Promise<WhepViewer> {
    const viewer = new WhepViewer(audio);
    await viewer.#peer.play(url);
    return viewer;
  }

  get connected(): boolean {
    return this.#peer.state === 'connected';
  }

  close(): void {
    this.#peer.close();
  }

  #packet(packet: Buffer): void {
    const { sequence, marker, payload } = parseRtp(packet);
    const missing = this.#sequence === undefined ? 0 : (sequence - this.#sequence - 1) & 0xffff;
    // the server probes for bandwidth with padding; what is far behind was sent twice
    if (missing > 0x8000) return;
    this.#sequence = sequence;
    this.packets++;
    if (missing > 0) {
      this.lost += missing;
      this.#broken = true;
    }
    if (payload.length === 0) return;
    this.#stamp ??= findStamp(payload);
    if (!marker) return;
    if (this.#stamp !== undefined && !this.#broken) {
      const now = monotonic();
      this.firstFrame ||= now;
      this.delays.push(now - this.#stamp.time);
      this.frames.add(this.#stamp.frame);
    }
    this.#stamp = undefined;
    this.#broken = false;
  }
}
