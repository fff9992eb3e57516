/** What runs until it is closed, for which the server waits. */
export interface Part {
  close(): Promise<void> | void;
}

/** Closes them, all at the same time. */
export async function closeAll(parts: readonly Part[]): Promise<void> {
  await Promise.all(parts.map(async (part) => part.close()));
}
