import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Version {
  /** `major.minor.patch` */
  readonly version: string;
  /** `v<version>-<count>-g<hash>`; a promise while git is being asked. */
  readonly gitVersion: string | Promise<string>;
}

const ROOT = join(import.meta.dirname, '..');
/** Written where the server is packaged without its history. */
const PACKAGED = 'GIT_VERSION';
const GIT_TIMEOUT_MS = 2000;
const VERSION_LINE = '^  "version": "';

/** The version of this copy of the server: of its checkout, or as noted at packaging. */
export async function readVersion(root = ROOT): Promise<{ version: string; gitVersion: string }> {
  const version = readNumber(root);
  return { version, gitVersion: await readGitVersion(version, root) };
}

/** Its `major.minor.patch` alone. */
export function readNumber(root = ROOT): string {
  return (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;
}

/** Asks git, which takes some processes of its own. */
export async function readGitVersion(version: string, root = ROOT): Promise<string> {
  return (await fromGit(root, version)) ?? (await packaged(root, version)) ?? `v${version}-0-g0000000`;
}

/** Commits are counted from the version's tag, where there is none from the commit that wrote the version into package.json. */
async function fromGit(root: string, version: string): Promise<string | undefined> {
  if (!existsSync(join(root, '.git'))) return undefined;
  const git = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)('git', ['-C', root, ...args], { timeout: GIT_TIMEOUT_MS });
    return stdout.trim();
  };
  const tag = `v${version}`;
  try {
    const tagged = await git('tag', '--list', tag);
    const release = tagged || (await git('log', '-1', '--format=%H', '-G', VERSION_LINE, '--', 'package.json'));
    const [count, hash] = await Promise.all([
      git('rev-list', '--count', release === '' ? 'HEAD' : `${release}..HEAD`),
      git('rev-parse', '--short=7', 'HEAD'),
    ]);
    // the output of a child can be missing on an overloaded machine, although it ended well
    return count !== '' && hash !== '' ? `${tag}-${count}-g${hash}` : undefined;
  } catch {
    // No git program, or a checkout without a commit: not a reason to fail.
    return undefined;
  }
}

/** `git describe --always` writes a hash alone where there is no tag. */
async function packaged(root: string, version: string): Promise<string | undefined> {
  const file = join(root, PACKAGED);
  if (!existsSync(file)) return undefined;
  const noted = (await readFile(file, 'utf8')).trim();
  return /^[0-9a-f]{7,40}$/.test(noted) ? `v${version}-0-g${noted}` : noted;
}
