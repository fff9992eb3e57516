/** A set with a limit of values: the oldest are removed first. Adding a value again does not renew it. */
export class RecentSet<T> extends Set<T> {
  readonly #limit: number;

  constructor(limit: number, values: Iterable<T> = []) {
    super();
    this.#limit = limit;
    for (const value of values) this.add(value);
  }

  override add(value: T): this {
    super.add(value);
    if (this.size > this.#limit) this.delete(this.values().next().value as T);
    return this;
  }
}
