/** A set of at most so many values: the oldest are forgotten first. What was there stays as old as it was. */
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
