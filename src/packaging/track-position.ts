import type { Cut } from './cut.ts';

type Place =
  /** Reaches cuts as they come. */
  | 'in step'
  /** Was already past the newest cut: its parts are made before the ends of their segments are known. */
  | 'ahead'
  /** The others do not wait: its segments begin with theirs, without media. */
  | 'absent'
  /** Absent, but close enough for the others to wait again. */
  | 'returning';

type PlaceEvent = 'passed' | 'followed' | 'expired' | 'far' | 'near' | 'back';

/** New places by events; without an entry, the place stays. */
const PLACES: Readonly<Record<Place, Partial<Record<PlaceEvent, Place>>>> = {
  'in step': { passed: 'ahead', expired: 'absent' },
  ahead: { followed: 'in step', expired: 'absent' },
  absent: { near: 'returning', back: 'in step' },
  returning: { far: 'absent', expired: 'absent', back: 'in step' },
};

/** Position of a track among the others of its stream: the cuts that it has not reached, and whether the others wait for it. */
export class TrackPosition {
  /** Oldest first. */
  readonly #pending: Cut[] = [];
  #place: Place = 'in step';

  /** Number of cuts that the others have reached and this track has not. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Oldest pending cut. */
  get oldest(): Cut | undefined {
    return this.#pending[0];
  }

  get awaitsDiscontinuity(): boolean {
    return this.#pending.some(({ discontinuity }) => discontinuity);
  }

  get awaitsJump(): boolean {
    return this.#pending.some(({ jump }) => jump);
  }

  /** Whether the others do not wait, or did not until a late packet came. */
  get isAway(): boolean {
    return this.#place === 'absent' || this.#place === 'returning';
  }

  get isAhead(): boolean {
    return this.#place === 'ahead';
  }

  /** Adds a cut. @returns whether the track begins all pending segments at once: it delivers no media for them */
  add(cut: Cut): boolean {
    this.#pending.push(cut);
    return this.#place === 'absent' || (this.#place === 'returning' && cut.jump);
  }

  /** Removes the oldest cut, whose segment begins. */
  take(): Cut {
    return this.#pending.shift() as Cut;
  }

  /** Records whether the track was past the newest cut when that came. */
  compare(isPast: boolean): void {
    this.#move(isPast ? 'passed' : 'followed');
  }

  /** Whether the others have waited long enough for the oldest cut. @param msn of the newest cut for which they have */
  isOver(msn: number): boolean {
    const [cut] = this.#pending;
    return cut !== undefined && (this.#place === 'absent' || cut.msn <= msn);
  }

  /** Lets the others continue without the track. */
  expire(): void {
    this.#move('expired');
  }

  /** Records a packet that came too late. @param near whether the track is close enough for the others to wait */
  missed(near: boolean): void {
    this.#move(near ? 'near' : 'far');
  }

  /** Lets the others wait for the track again: it delivers media. */
  comeBack(): void {
    this.#move('back');
  }

  #move(event: PlaceEvent): void {
    this.#place = PLACES[this.#place][event] ?? this.#place;
  }
}
