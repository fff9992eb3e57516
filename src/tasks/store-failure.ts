import { ConflictError, StorageError, UnavailableError } from '#cluster';
import { KilnError, kilnError } from '../errors.ts';

/**
 * Makes a change in the store.
 * @throws clusterUnavailable, changeUnknown, storageFailed for a store that fails, does not answer or keeps being changed by
 * others; what else `step` throws
 */
export async function inStore<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof UnavailableError) throw kilnError(error.mayBeDone ? 'changeUnknown' : 'clusterUnavailable');
    if (error instanceof ConflictError) throw kilnError('clusterUnavailable');
    if (error instanceof StorageError) throw kilnError('storageFailed');
    throw error;
  }
}

/** Fields of the log for an error: one that is meant for clients has no stack. */
export function reasonOf(error: unknown): object {
  return error instanceof KilnError || error instanceof UnavailableError ? { reason: error.message } : { err: error };
}
