import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/*
 * Loaded before each file of tests (`require` in ava.config.js): every file has a thread of its own, which would strip
 * the types of all that it imports and compile it anew. Processes that tests start inherit it by the environment.
 */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '../../node_modules/.cache/node');
enableCompileCache(process.env.NODE_COMPILE_CACHE);
