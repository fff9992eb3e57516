/** Component that the server closes on shutdown. */
export interface Closable {
  close(): Promise<void> | void;
}

/** Closes all at the same time. */
export async function closeAll(components: readonly Closable[]): Promise<void> {
  await Promise.all(components.map(async (component) => component.close()));
}
