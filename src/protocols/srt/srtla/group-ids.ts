import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ID_BYTES } from './packet.ts';

const SENDER_BYTES = ID_BYTES / 2;
const MAC_BYTES = 32;
const SIGNED_BYTES = ID_BYTES - MAC_BYTES;
const TIME_BYTES = 8;
/** Time from an id to the first link that has it. */
const FRESH_MS = 10_000;

/**
 * Ids of groups: what the sender chose, the time, random bytes, and a signature of them all. So a request leaves nothing
 * behind until its sender has shown, with the signature, that it receives what is sent to its address.
 */
export class GroupIds {
  readonly #secret = randomBytes(32);

  /** @param asked id of a request @param now in milliseconds */
  issue(asked: Buffer, now: number): Buffer {
    const id = randomBytes(ID_BYTES);
    asked.copy(id, 0, 0, SENDER_BYTES);
    id.writeDoubleBE(now, SENDER_BYTES);
    this.#sign(id).copy(id, SIGNED_BYTES);
    return id;
  }

  /** Name of the group of an id; undefined when this receiver has not issued the id. Its time does not depend on valid ids. */
  nameOf(id: Buffer): string | undefined {
    const mac = id.subarray(SIGNED_BYTES);
    return timingSafeEqual(mac, this.#sign(id)) ? mac.toString('latin1') : undefined;
  }

  /** Whether an id that was issued may still begin a group. */
  isFresh(id: Buffer, now: number): boolean {
    return now - id.subarray(SENDER_BYTES, SENDER_BYTES + TIME_BYTES).readDoubleBE() <= FRESH_MS;
  }

  #sign(id: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(id.subarray(0, SIGNED_BYTES)).digest();
  }
}
