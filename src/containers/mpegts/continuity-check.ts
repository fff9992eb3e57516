import { PACKET_BYTES } from './stream-types.ts';
import { continuityCounter, hasPayload, isDiscontinuity } from './transport-packet.ts';

/** What the counter of a packet says of it: a copy of the one before, or that packets before it are missing. */
export type Continuity = 'next' | 'repeated' | 'lost';

/** Bytes by which a copy is told from another packet with the same counter: one clock may differ in front of them. */
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
      // counters do not advance without payload, and are free to change where that is told
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
    // each may be sent twice, not more often; another one is the fifteenth behind a loss
    const isCopy = counter === last && isSame && !this.#repeated;
    this.#repeated = isCopy;
    return isCopy ? 'repeated' : 'lost';
  }
}
