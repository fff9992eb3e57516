/** State of a stream, shared by all views of it. */
interface Kept {
  readonly values: Map<string, unknown>;
  readonly onChange: () => void;
  over: boolean;
  taken: boolean;
}

/**
 * State that modules keep for the stream that continues this one: the next one under its name, within a short time, on this
 * node or another. Values are small JSON.
 */
export class Continuity {
  readonly #inherited: ReadonlyMap<string, unknown>;
  readonly #kept: Kept;

  /**
   * @param onChange called when a kept value has changed
   * @param kept what another view keeps
   */
  constructor(inherited: ReadonlyMap<string, unknown> = new Map(), onChange: () => void = () => {}, kept?: Kept) {
    this.#inherited = inherited;
    this.#kept = kept ?? { values: new Map(inherited), onChange, over: false, taken: false };
  }

  /** View of a further publisher of the same stream: it inherits what is kept by now, and what it keeps is kept here. */
  forPublisher(): Continuity {
    return new Continuity(new Map(this.#kept.values), undefined, this.#kept);
  }

  /** Value that the stream before kept under a key; undefined when there was none. A node of another version may have written it. */
  inherited(key: string): unknown {
    return this.#inherited.get(key);
  }

  /** Values that the next stream inherits: those of this one, or else those that this one inherited. */
  get kept(): ReadonlyMap<string, unknown> {
    return this.#kept.values;
  }

  /** Takes the place of what was kept under the key. */
  keep(key: string, value: unknown): void {
    if (this.#kept.over) return;
    this.#kept.values.set(key, value);
    this.#kept.onChange();
  }

  /** Nothing continues the stream any more: it was ended on purpose, or is continued elsewhere already. */
  get over(): boolean {
    return this.#kept.over;
  }

  /** Over because the stream that continues this one has the name already. */
  get taken(): boolean {
    return this.#kept.taken;
  }

  /** Discards everything. @param taken another stream has the name */
  end({ taken = false } = {}): void {
    this.#kept.over = true;
    this.#kept.taken = taken;
    this.#kept.values.clear();
    this.#kept.onChange();
  }
}
