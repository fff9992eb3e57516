import { PACKET_BYTES, SYNC_BYTE } from '../../containers/mpegts/stream-types.ts';
import { RtpError } from '../../protocols/rtp/receive/error.ts';
import { isRtcp, parseRtp } from '../../protocols/rtp/receive/packet.ts';
import { ReorderWindow } from '../../protocols/rtp/receive/reorder-window.ts';
import { GapTimer } from '../rtp/gap-timer.ts';
import { DatagramOrder } from './datagram-order.ts';

const WAIT_MS = 100;
/** Number of missing RTP packets, each of up to 7 TS packets, from which on 4-bit counters may not show the loss. */
const UNCOUNTED = 3;
const RTP_VERSION = 2;

export interface DatagramsEvents {
  data(bytes: Buffer): void;
  /** Reports a loss that the continuity counters may not show. */
  lost(): void;
  fault(reason: string): void;
}

/** Whether a datagram holds MPEG-TS, plain or after an RTP header (RFC 2250 section 2). */
export function holdsTransportStream(data: Buffer): boolean {
  return data[0] === SYNC_BYTE || rtpPayload(data)?.[0] === SYNC_BYTE;
}

/**
 * Converts the datagrams of one sender to its transport stream. A plain datagram differs from RTP by its first byte;
 * later ones may be cut anywhere: ffmpeg fills datagrams of 1472 bytes by default.
 */
export class Datagrams {
  readonly #events: DatagramsEvents;
  readonly #window: ReorderWindow;
  readonly #order: DatagramOrder | undefined;
  readonly #gaps: GapTimer;
  #isPlain = false;

  /** @param reordering whether to wait for missing datagrams; otherwise late RTP packets are dropped */
  constructor(reordering: boolean, events: DatagramsEvents) {
    this.#events = events;
    this.#window = new ReorderWindow(reordering ? WAIT_MS : 0, {
      packet: ({ payload }) => events.data(payload),
      lost: (count) => {
        events.fault('RTP packets were lost');
        if (count >= UNCOUNTED) events.lost();
      },
      restarted: () => events.lost(),
    });
    this.#order = reordering ? new DatagramOrder(WAIT_MS, (data) => events.data(data)) : undefined;
    this.#gaps = new GapTimer(this.#order === undefined ? [this.#window] : [this.#window, this.#order]);
  }

  /** @param data is kept */
  push(data: Buffer): void {
    const now = performance.now();
    if (this.#isRtp(data)) this.#pushRtp(data, now);
    else if (this.#order === undefined) this.#events.data(data);
    else this.#pushPlain(this.#order, data, now);
  }

  close(): void {
    this.#gaps.close();
  }

  #isRtp(data: Buffer): boolean {
    if (data[0] === SYNC_BYTE) this.#isPlain = true;
    if ((data[0] as number) >> 6 !== RTP_VERSION) return false;
    if (this.#isPlain) this.#isPlain = !holdsPackets(rtpPayload(data));
    return !this.#isPlain;
  }

  #pushRtp(data: Buffer, now: number): void {
    if (isRtcp(data)) return;
    try {
      this.#window.push(parseRtp(data), now);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#events.fault(error.message);
    }
    this.#gaps.heard(this.#window, now);
  }

  #pushPlain(order: DatagramOrder, data: Buffer, now: number): void {
    order.push(data, now);
    this.#gaps.heard(order, now);
  }
}

function holdsPackets(payload: Buffer | undefined): boolean {
  return payload !== undefined && payload[0] === SYNC_BYTE && payload.length % PACKET_BYTES === 0;
}

function rtpPayload(data: Buffer): Buffer | undefined {
  if ((data[0] ?? 0) >> 6 !== RTP_VERSION || isRtcp(data)) return undefined;
  try {
    return parseRtp(data).payload;
  } catch (error) {
    if (error instanceof RtpError) return undefined;
    throw error;
  }
}
