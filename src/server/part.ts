/** Component that the server closes on shutdown. */
export interface Part {
  close(): Promise<void> | void;
}

/** Closes all at the same time. */
export async function closeAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map(async (part) => part.close()));
}
