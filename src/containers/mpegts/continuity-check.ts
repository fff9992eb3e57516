import { PACKET_BYTES } from './stream-types.ts';
import { continuityCounter, hasPayload, isDiscontinuity } from './transport-packet.ts';

/** Meaning of a packet's counter: the next packet, a copy of the previous one, or the next after missing ones. */
export type Continuity = 'next' | 'repeated' | 'lost';

/** Bytes at the end that identify a copy among packets with the same counter: the clock before them may differ. */
const TAIL_BYTES = 4;

/** Follows the continuity counters of one PID (ISO/IEC 13818-1 2.4.3.3). */
export class ContinuityCheck {
  #last: number | undefined;
  #tail = 0;
  #repeated = false;

  check(data: Buffer, at: number): Continuity {
    const counter = continuityCounter(data, at);
    const last = this.#last;
    if (!hasPayload(data, at)) {
      // counters do not advance without payload, and may change where a discontinuity is signalled
      if (isDiscontinuity(data, at)) this.#last = undefined;
      return 'next';
    }
    const tail = data.readUInt32BE(at + PACKET_BYTES - TAIL_BYTES);
    const isSame = tail === this.#tail;
    this.#last = counter;
    this.#tail = tail;
    if (last === undefined || isDiscontinuity(data, at) || counter === ((last + 1) & 0xf)) {
      this.#repeated = false;
      return 'next';
    }
    // a packet may be sent twice; a further one with this counter follows a loss of 15 packets
    const isCopy = counter === last && isSame && !this.#repeated;
    this.#repeated = isCopy;
    return isCopy ? 'repeated' : 'lost';
  }
}
