import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Types are stripped and code is compiled once for each version of a file, not at each start.
// Where the folder cannot be written, Node goes on without it.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/node'));
await import('./command.ts');
