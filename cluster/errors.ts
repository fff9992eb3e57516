import type { Owner } from './types.ts';

/** An entry exists already or has changed since the caller read it, or a lock was held by others for too long. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** The durable copy cannot be read, locked or written; the message names the file. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
}

/** The store of the cluster cannot be reached, or does not take writes. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  /** The command was sent and not answered: it may have been executed. */
  readonly mayBeDone: boolean;

  constructor(
    message: string,
    { mayBeDone = false, ...options }: ErrorOptions & { readonly mayBeDone?: boolean } = {},
  ) {
    super(message, options);
    this.mayBeDone = mayBeDone;
  }
}

/** A lease was lost, or is used after its release. */
export class LostError extends Error {
  override readonly name = 'LostError';
  /** The present owner of the key, if known. */
  readonly owner: Owner | undefined;

  constructor(message: string, owner?: Owner) {
    super(message);
    this.owner = owner;
  }
}

/** There is no such node. */
export class NoNodeError extends Error {
  override readonly name = 'NoNodeError';
}

/** A call never reached that incarnation of the node: it can be made elsewhere. */
export class UnreachableError extends Error {
  override readonly name: string = 'UnreachableError';
  /** True when that life of the node has refused the call, false when another one has; undefined when none has. */
  readonly lives: boolean | undefined;

  constructor(message: string, { lives, ...options }: ErrorOptions & { readonly lives?: boolean } = {}) {
    super(message, options);
    this.lives = lives;
  }
}

/** A call was sent and no answer came, or only one to its repetition: it may have had its effect. */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';
  /** True when that life of the node has refused a repetition of the call, false when another one has; undefined when none has. */
  readonly lives: boolean | undefined;

  constructor(message: string, { lives, ...options }: ErrorOptions & { readonly lives?: boolean | undefined } = {}) {
    super(message, options);
    this.lives = lives;
  }
}
