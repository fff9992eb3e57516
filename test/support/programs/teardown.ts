/** What a program that is no test undoes at its end, last things first. */
export class Teardown {
  readonly #undos: (() => unknown)[] = [];

  teardown(undo: () => unknown): void {
    this.#undos.push(undo);
  }

  async run(): Promise<void> {
    for (const undo of this.#undos.splice(0).reverse()) await undo();
  }
}
