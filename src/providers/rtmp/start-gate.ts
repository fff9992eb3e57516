import type { Declared } from './metadata.ts';

type Kind = 'video' | 'audio';

/** How long the second medium is waited for when the first is known. */
export const SECOND_MEDIUM_WAIT_MS = 1000;
const MAX_WAITING_UNITS = 256;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/** Decides when a source's tracks are complete: both media, or all that is announced, or waited long enough. */
export class StartGate {
  #announced: Declared['announced'];
  readonly #known = new Set<Kind>();
  readonly #absent = new Set<Kind>();
  #units = 0;
  #bytes = 0;
  #waited = false;

  announce(announced: Declared['announced']): void {
    this.#announced = announced ?? this.#announced;
  }

  /** The track of that kind is known. */
  known(kind: Kind): void {
    this.#known.add(kind);
  }

  /** A medium that was announced but cannot be taken need not be waited for. */
  unusable(kind: Kind): void {
    this.#absent.add(kind);
  }

  /** One unit is held back. */
  held(bytes: number): void {
    this.#units++;
    this.#bytes += bytes;
  }

  /** The second medium was waited for long enough. */
  waited(): void {
    this.#waited = true;
  }

  get anyKnown(): boolean {
    return this.#known.size > 0;
  }

  get open(): boolean {
    if (!this.anyKnown) return false;
    if (this.#waited || this.#units >= MAX_WAITING_UNITS || this.#bytes >= MAX_WAITING_BYTES) return true;
    return this.#settled('video') && this.#settled('audio');
  }

  #settled(kind: Kind): boolean {
    return this.#known.has(kind) || this.#absent.has(kind) || this.#announced?.[kind] === false;
  }
}
