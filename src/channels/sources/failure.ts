import Type from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import { ChannelError } from './error.ts';

const Failure = Type.Object({ message: Type.String() });

/** Serializes the failure of a new channel for the calling node; undefined if the error is a fault. */
export function writeChannelFailure(error: unknown): Json | undefined {
  return error instanceof ChannelError ? { message: error.message } : undefined;
}

/** Reads the failure of a new channel from another node. */
export function readChannelFailure(failure: Json): ChannelError {
  return new ChannelError(
    Value.Check(Failure, failure) ? failure.message : 'the node that should run the channel gave no reason',
  );
}
