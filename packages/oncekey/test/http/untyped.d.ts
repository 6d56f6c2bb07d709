/** Packages of the tests that bring no types of their own. */
declare module "express4" {
  import express = require("express");
  export = express;
}

declare module "compression" {
  import type { RequestHandler } from "express";

  function compression(options: { readonly threshold: number }): RequestHandler;
  export = compression;
}

declare module "multer" {
  import type { RequestHandler } from "express";

  const multer: {
    (options: { readonly storage: unknown }): { any(): RequestHandler };
    memoryStorage(): unknown;
  };
  export = multer;
}
