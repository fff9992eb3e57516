/**
 * What the modules of a stream keep for the stream that continues it: the next one under its name, soon, on this node
 * or another. Values are small JSON.
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

  /** What the stream before kept under a key; undefined when there was none. It may come from another version. */
  inherited(key: string): unknown {
    return this.#inherited.get(key);
  }

  /** What the next stream inherits: until a module keeps something of its own under a key, what this one did. */
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

  /** It is over because another stream has the name already, which continues this one. */
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
