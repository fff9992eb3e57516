import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
}

const ROOT = join(import.meta.dirname, '../../..');
/** Where `kubernetes-types`, which is made of the OpenAPI description of Kubernetes 1.30, has what of an apiVersion. */
const moduleOf = (apiVersion: string): string =>
  `kubernetes-types/${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}`;

/**
 * What the types of Kubernetes' own API object to in manifests, as the compiler says it: fields that do not exist, those
 * that are missing, values of another type. Nothing says it of formats and of numbers that are too large.
 */
export async function typeFaults(manifests: readonly Manifest[]): Promise<string[]> {
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  // beside the packages, where the compiler looks for them
  const folder = mkdtempSync(join(cache, 'manifests-'));
  try {
    const file = join(folder, 'manifests.ts');
    writeFileSync(file, manifests.map(declaration).join('\n'));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'preserve', '--types', ''];
    const output = await new Promise<string>((resolve, reject) => {
      execFile(join(ROOT, 'node_modules/.bin/tsc'), [...options, '--ignoreConfig', file], (error, stdout, stderr) => {
        // what it objects to is on its standard output
        if (error !== null && stdout === '') reject(new Error(stderr, { cause: error }));
        else resolve(stdout);
      });
    });
    return output.split('\n').filter((line) => line.includes('error TS'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function declaration(manifest: Manifest, index: number): string {
  const { apiVersion, kind } = manifest;
  return [
    `import type { ${kind} as Kind${index} } from '${moduleOf(apiVersion)}';`,
    `export const manifest${index}: Kind${index} = ${JSON.stringify(manifest, undefined, 1)};`,
  ].join('\n');
}
