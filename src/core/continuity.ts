/**
 * State that modules keep for the stream that continues this one: the next one under its name, within a short time, on this
 * node or another. Values are small JSON.
 */
export class Continuity {
  readonly #inherited: ReadonlyMap<string, unknown>;
  readonly #kept: Map<string, unknown>;
  readonly #onChange: () => void;
  #over = false;
  #taken = false;

  /** @param onChange called when a kept value has changed */
  constructor(inherited: ReadonlyMap<string, unknown> = new Map(), onChange: () => void = () => {}) {
    this.#inherited = inherited;
    this.#kept = new Map(inherited);
    this.#onChange = onChange;
  }

  /** Value that the stream before kept under a key; undefined when there was none. A node of another version may have written it. */
  inherited(key: string): unknown {
    return this.#inherited.get(key);
  }

  /** Values that the next stream inherits: those of this one, or else those that this one inherited. */
  get kept(): ReadonlyMap<string, unknown> {
    return this.#kept;
  }

  /** Takes the place of what was kept under the key. */
  keep(key: string, value: unknown): void {
    if (this.#over) return;
    this.#kept.set(key, value);
    this.#onChange();
  }

  /** Nothing continues the stream any more: it was ended on purpose, or is continued elsewhere already. */
  get over(): boolean {
    return this.#over;
  }

  /** Over because the stream that continues this one has the name already. */
  get taken(): boolean {
    return this.#taken;
  }

  /** Discards everything. @param taken another stream has the name */
  end({ taken = false } = {}): void {
    this.#over = true;
    this.#taken = taken;
    this.#kept.clear();
    this.#onChange();
  }
}
