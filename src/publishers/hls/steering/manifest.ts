import type { ChildUris } from '../master/master-template.ts';
import { REQUESTED, type Pathway } from './pathways.ts';

/** Name of steering manifests, below the path of their stream. */
export const MANIFEST = 'steering.json';
/** Seconds after which a player asks again: half the time for which a draining node keeps its viewers by default. */
const TTL = 15;

/** Steering manifest (RFC 8216bis section 7.1), with the pathways that the master playlist does not have. */
export interface SteeringManifest {
  readonly VERSION: 1;
  readonly TTL: number;
  readonly 'PATHWAY-PRIORITY': readonly string[];
  readonly 'PATHWAY-CLONES': readonly PathwayClone[];
}

interface PathwayClone {
  readonly 'BASE-ID': string;
  readonly ID: string;
  readonly 'URI-REPLACEMENT': {
    /** Host without port. */
    readonly HOST?: string;
    readonly 'PER-VARIANT-URIS'?: Readonly<Record<string, string>>;
    readonly 'PER-RENDITION-URIS'?: Readonly<Record<string, string>>;
  };
}

/**
 * Writes the manifest of a player. A host alone is replaced where a node has the scheme and port that the player asked; otherwise each URI
 * is: players ignore a port in `HOST`.
 * @param origin scheme, host and port that the player asked
 * @param children absolute paths; undefined for a player without a session, which gets the pathways that a host alone makes
 */
export function steeringManifest(
  pathways: readonly Pathway[],
  origin: string,
  children: ChildUris | undefined,
): SteeringManifest {
  const clones = pathways.flatMap((pathway) => cloneOf(pathway, new URL(origin), children) ?? []);
  const known = new Set([REQUESTED, ...clones.map(({ ID }) => ID)]);
  return {
    VERSION: 1,
    TTL,
    // a player may refuse a list with a pathway that it does not know
    'PATHWAY-PRIORITY': pathways.flatMap(({ id }) => (known.has(id) ? [id] : [])),
    'PATHWAY-CLONES': clones,
  };
}

function cloneOf({ id, url }: Pathway, asked: URL, children: ChildUris | undefined): PathwayClone | undefined {
  if (url === undefined) return undefined;
  const { protocol, port, hostname } = new URL(url);
  const differsByHost = protocol === asked.protocol && port === asked.port;
  if (!differsByHost && children === undefined) return undefined;
  const at = (paths: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(paths).map(([child, path]) => [child, url + path]));
  return {
    'BASE-ID': REQUESTED,
    ID: id,
    'URI-REPLACEMENT': {
      ...(differsByHost && { HOST: hostname }),
      ...(children !== undefined && {
        'PER-VARIANT-URIS': at(children.variants),
        'PER-RENDITION-URIS': at(children.renditions),
      }),
    },
  };
}
