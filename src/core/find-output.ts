import type { Application } from './application.ts';
import type { OutputStream } from './output-stream.ts';

/**
 * Finds the output stream that a viewer asks for, wherever it is: here, on another node, or with an origin that it is
 * pulled from. What comes from elsewhere is there, as a relay or a pulled stream, when the promise resolves.
 * @returns undefined when there is none
 * @throws ownerUnreachable when the node that has it cannot be reached
 */
export type FindOutput = (
  application: Application,
  name: string,
  query: URLSearchParams,
) => Promise<OutputStream | undefined>;
