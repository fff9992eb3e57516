import {
  OutcomeUnknownError,
  UnreachableError,
  type Cluster,
  type NodeIdentity,
  type PeerRequest,
  type PeerResponse,
} from '#cluster';
import { KilnError, kilnError } from '../errors.ts';

type Forwarding = Pick<Cluster, 'forward'>;

/**
 * What another node answers.
 * @throws ownerUnreachable when the call never came there, ownerSilent when that is not known; `cause` tells why
 */
export async function askNode(
  cluster: Forwarding,
  node: NodeIdentity,
  request: PeerRequest,
  timeoutMs: number,
): Promise<PeerResponse> {
  try {
    return await cluster.forward(node, request, timeoutMs);
  } catch (cause) {
    if (cause instanceof UnreachableError) throw Object.assign(kilnError('ownerUnreachable'), { cause });
    if (cause instanceof OutcomeUnknownError) throw Object.assign(kilnError('ownerSilent'), { cause });
    throw cause;
  }
}

/** The same, or undefined when there is no answer, for whatever reason. */
export async function tryNode(...call: Parameters<typeof askNode>): Promise<PeerResponse | undefined> {
  try {
    return await askNode(...call);
  } catch (error) {
    if (error instanceof KilnError) return undefined;
    throw error;
  }
}
