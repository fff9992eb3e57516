import { packetAt } from '../../protocols/rtsp/interleaved.ts';
import type { DatagramLane } from '../../rtsp/datagram-ports.ts';
import type { MediaSink } from './sink.ts';

/** Bytes that are sent at once: the usual receive buffer of a client has room for three times as much. */
const BURST_BYTES = 64 * 1024;
/** Time between bursts: 100 Mbit/s. */
const BURST_MS = 5;

/** Media in UDP packets, which are spread so that a key frame does not overrun the client's receive buffer. */
export class DatagramSink implements MediaSink {
  writable: () => void = () => {};
  readonly #lanes = new Map<number, DatagramLane>();
  /** Unsent rest of a frame. */
  #rest: { readonly lane: DatagramLane; readonly frame: Buffer; readonly at: number } | undefined;
  /** Bytes sent since `#since`, in milliseconds of the monotonic clock. */
  #sent = 0;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;

  add(track: number, lane: DatagramLane): void {
    this.#lanes.set(track, lane);
  }

  /** Ends the lane of a track, if it has one. */
  remove(track: number): void {
    this.#lanes.get(track)?.close();
    this.#lanes.delete(track);
  }

  send(track: number, frame: Buffer): boolean {
    const lane = this.#lanes.get(track);
    return lane === undefined || this.#send(lane, frame, 0);
  }

  report(track: number, packet: Buffer): void {
    this.#lanes.get(track)?.rtcp(packet);
  }

  close(): void {
    this.writable = () => {};
    clearTimeout(this.#timer);
    this.#rest = undefined;
    for (const lane of this.#lanes.values()) lane.close();
    this.#lanes.clear();
  }

  #send(lane: DatagramLane, frame: Buffer, from: number): boolean {
    const now = performance.now();
    if (now - this.#since >= BURST_MS) {
      this.#since = now;
      this.#sent = 0;
    }
    for (let at = from; at < frame.length;) {
      if (this.#sent >= BURST_BYTES) {
        this.#rest = { lane, frame, at };
        this.#timer = setTimeout(() => this.#resume(), BURST_MS);
        return false;
      }
      const [start, end] = packetAt(frame, at);
      lane.rtp(frame.subarray(start, end));
      this.#sent += end - start;
      at = end;
    }
    return true;
  }

  #resume(): void {
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest === undefined || this.#send(rest.lane, rest.frame, rest.at)) this.writable();
  }
}
