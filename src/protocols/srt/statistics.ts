/** Statistics of a connection since its beginning (SRT API, "statistics"), in packets. */
export interface SrtStatistics {
  /** Smoothed round-trip time in milliseconds. */
  readonly rtt: number;
  readonly received: SrtReceived;
  readonly sent: SrtFlow;
  /** Estimated capacity of the network, in bits per second. */
  readonly capacity: number;
}

export interface SrtFlow {
  readonly packets: number;
  readonly lost: number;
  readonly retransmitted: number;
  /** Packets that came, or would be sent, too late. */
  readonly dropped: number;
  /** From the oldest to the newest packet in the buffer, in milliseconds. */
  readonly buffered: number;
}

export interface SrtReceived extends SrtFlow {
  /** Packets that came after their time, whether or not they had come before. */
  readonly belated: number;
  /** Packets that were encrypted with another key. */
  readonly undecryptable: number;
}

/** `struct CBytePerfMon` has some 500 bytes in libsrt 1.5; later versions add to its end. */
export const STATISTICS_BYTES = 4096;

/** Offsets in `struct CBytePerfMon` (srt.h). */
const AT = {
  sent: 8,
  received: 16,
  sendLost: 24,
  receiveLost: 28,
  resent: 32,
  sendDropped: 64,
  receiveDropped: 68,
  undecryptable: 72,
  receivedAgain: 164,
  belated: 224,
  rtt: 328,
  megabits: 336,
  sendBuffered: 372,
  receiveBuffered: 388,
} as const;

/** @param struct filled by `srt_bstats`, with totals that were never reset */
export function readStatistics(struct: Buffer): SrtStatistics {
  const count = (at: number): number => struct.readInt32LE(at);
  const total = (at: number): number => Number(struct.readBigInt64LE(at));
  return {
    rtt: struct.readDoubleLE(AT.rtt),
    received: {
      packets: total(AT.received),
      lost: count(AT.receiveLost),
      retransmitted: count(AT.receivedAgain),
      dropped: count(AT.receiveDropped),
      buffered: count(AT.receiveBuffered),
      belated: total(AT.belated),
      undecryptable: count(AT.undecryptable),
    },
    sent: {
      packets: total(AT.sent),
      lost: count(AT.sendLost),
      retransmitted: count(AT.resent),
      dropped: count(AT.sendDropped),
      buffered: count(AT.sendBuffered),
    },
    capacity: Math.round(struct.readDoubleLE(AT.megabits) * 1e6),
  };
}
